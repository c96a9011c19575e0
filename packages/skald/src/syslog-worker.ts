import { syslogJobs } from "@skald/distributor/syslog";
import { serveJobs } from "@skald/runtime";

// The thread of the syslog listeners.
serveJobs(syslogJobs());
