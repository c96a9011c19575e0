import type { CallOptions } from "./call.js";
import type { PushOutcome, PushRequest } from "./ingester.js";

/** Takes rows of a tenant that did not come over HTTP: validated, limited and stored as if they had. */
export interface Distributor {
  /**
   * Stores what the tenant's limits allow of a batch; what they do not is reported, not thrown. Throws rate_limited when
   * the tenant may send none of it now, and what the ingesters throw.
   */
  pushBatch(request: PushRequest, options: CallOptions): Promise<PushOutcome>;
}
