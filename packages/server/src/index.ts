// Runs over HTTP, on any host that speaks `Request` and `Response`.
export {
  type Authorize,
  type Names,
  type Permission,
  type Principal,
  type Scope,
  permissions,
} from './access/principal.ts'
export { type AgUiEvent, type AgUiMessage, type AgUiNames, toAgUi } from './ag-ui/map.ts'
export type { A2aTask, A2aUpdate } from './a2a/a2a-task.ts'
export { toA2a } from './a2a/mapped-tasks.ts'
export type { ChatChunk, ChatNames } from './facade/chat-chunks.ts'
export type { FacadeError } from './facade/facade-error.ts'
export { toOpenAiChat, toOpenAiResponse } from './facade/mapped-responses.ts'
export type { ResponseEvent, ResponseNames } from './facade/response-events.ts'
export { type UiMessageChunk, toUiMessages } from './ai-sdk/map.ts'
export { type Server, createServer } from './server/create-server.ts'
export type { Admit, ServerOptions } from './server/server-options.ts'
export { type SuperviseOptions, type Supervisor, supervise } from './supervise/supervise.ts'
