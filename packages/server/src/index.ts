// Runs over HTTP, on any host that speaks `Request` and `Response`.
export {
  type Authorize,
  type Names,
  type Permission,
  type Principal,
  type Scope,
  permissions,
} from './http/principal.ts'
export { type AgUiEvent, type AgUiMessage, type AgUiNames, toAgUi } from './ag-ui/map.ts'
export type { A2aTask, A2aUpdate } from './a2a/map.ts'
export { toA2a } from './a2a/map.ts'
export type { ChatChunk, ChatNames } from './openai/chat.ts'
export type { OpenAiError } from './openai/answer.ts'
export { toOpenAiChat, toOpenAiResponse } from './openai/responses.ts'
export type { ResponseEvent, ResponseNames } from './openai/responses.ts'
export { type UiMessageChunk, toUiMessages } from './ai-sdk/map.ts'
export { type Server, createServer } from './create-server.ts'
export type { Admit, RunWake, ServerOptions } from './create-server.ts'
export type { InspectorOptions } from './inspector.ts'
export type { ApprovalPageOptions, LinkOptions } from './approval-page.ts'
