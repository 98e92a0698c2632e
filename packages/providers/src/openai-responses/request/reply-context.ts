import type { CallContext } from '../../openai/request/call-context.ts'
import type { KeptResponse } from '../client/wire.ts'

/** What of the request a reply is read by. */
export interface ReplyContext extends CallContext {
  /** The tool that stands for the vendor's question whether a call to an MCP server may be made. */
  readonly approvalTool: string
  /** Makes what is remembered of a response that the service keeps; nothing where it keeps none. */
  readonly kept: (responseId: string) => KeptResponse | undefined
}
