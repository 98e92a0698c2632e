import type { CallContext } from '../../openai/request/call-context.ts'
import type { ProviderState } from '@tallystick/core/vocabulary'
import type { KeptResponse, NativeKind } from '../client/wire.ts'

/** The parts of the request that reading a reply needs. */
export interface ReplyContext extends CallContext {
  /** The tool that stands for the vendor's question whether a call to an MCP server may be made. */
  readonly approvalTool: string
  /** The tool of the application that each native tool is. */
  readonly nativeTools: { readonly [kind in NativeKind]?: string | undefined }
  /** Whether the vendor runs tools of its own, by names that nobody offered. */
  readonly hasProviderTools: boolean
  /** Makes what is remembered of a response that the service keeps; nothing where it keeps none. */
  readonly kept: (responseId: string) => KeptResponse | undefined
  /** Where the service keeps the conversation with a response, if it does. */
  readonly providerState: (responseId: string) => ProviderState | undefined
}
