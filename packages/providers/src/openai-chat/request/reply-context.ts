import type { CallContext } from '../../openai/request/call-context.ts'

/** The parts of the request that reading a reply needs. */
export interface ReplyContext extends CallContext {
  /** Whether a stream that comes to its proper end without a finish reason, but not without content, was whole. */
  readonly finishReasonOptional: boolean
}
