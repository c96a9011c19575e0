import { serveBucket } from "../bucket-thread.js";

serveBucket();
