/** What this server reads of a `POST /v1/messages`. Content given as a string is one text block. */
export interface TextBlock {
  readonly type: 'text'
  readonly text: string
}

export interface MediaBlock {
  readonly type: 'image' | 'document'
}

export interface ToolUseBlock {
  readonly type: 'tool_use'
  readonly id: string
  readonly name: string
  readonly input: Readonly<Record<string, unknown>>
}

export interface ToolResultBlock {
  readonly type: 'tool_result'
  readonly tool_use_id: string
  readonly is_error?: boolean | undefined
  readonly content?: readonly (TextBlock | MediaBlock)[] | undefined
}

export interface ThinkingBlock {
  readonly type: 'thinking' | 'redacted_thinking'
}

export type ContentBlock = TextBlock | MediaBlock | ToolUseBlock | ToolResultBlock | ThinkingBlock

export interface RequestMessage {
  readonly role: 'user' | 'assistant'
  readonly content: readonly ContentBlock[]
}

export interface RequestTool {
  readonly name: string
}

export type RequestToolChoice =
  | { readonly type: 'auto' | 'any'; readonly disable_parallel_tool_use?: boolean | undefined }
  | { readonly type: 'tool'; readonly name: string; readonly disable_parallel_tool_use?: boolean | undefined }
  | { readonly type: 'none' }

export interface MessagesRequest {
  readonly model: string
  readonly max_tokens: number
  readonly messages: readonly RequestMessage[]
  readonly system?: unknown
  readonly tools?: readonly RequestTool[] | undefined
  readonly tool_choice?: RequestToolChoice | undefined
  readonly stream?: boolean | undefined
}
