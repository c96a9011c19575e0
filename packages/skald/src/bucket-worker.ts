import { serveBucket } from "@skald/storage";

// The thread of the bucket.
serveBucket();
