// Defining tools.
export { defineTool } from './define/define-tool.ts'
export type {
  DefinedTool,
  ReconcileAnswer,
  ReconcileContext,
  ResultOf,
  ReturnedFor,
  ToolSpecification,
} from './define/define-tool.ts'
export type { ToolContext } from './define/run-tool.ts'
export type { InputOf, InputSchema } from './define/schema.ts'

// Results of a tool.
export { file, image, json, text } from './define/content.ts'
export type { FileSource, ImageSource, Source } from './define/content.ts'
export { settledLater } from './define/run-tool.ts'
export type { Deferral } from './define/run-tool.ts'
export { waitFor, waitTool } from './toolkit/wait-for.ts'
export type { WaitForOptions, WaitToolOptions } from './toolkit/wait-for.ts'
export { ToolError } from './define/outcome.ts'
export type { ToolErrorOptions, ToolErrorOutcome } from './define/outcome.ts'
export type { RetryOptions } from './define/run-tool.ts'
export type { ReadTraceparent } from './define/run-tool.ts'

// When a person decides.
export { allOf, anyOf, whenInput } from './define/approval.ts'
export type {
  ApprovalAnswer,
  ApprovalContext,
  ApprovalFunction,
  ApprovalPolicy,
  ApproversAnswer,
} from './define/approval.ts'

// Around tools.
export { readResult } from './toolkit/read-result.ts'
export type { ReadResultOptions } from './toolkit/read-result.ts'
export { todoList } from './toolkit/todo-list.ts'
export type { TodoListOptions } from './toolkit/todo-list.ts'
export { wrapTools } from './toolkit/middleware.ts'
export type { MiddlewareCall, MiddlewareEnding, ToolMiddleware } from './toolkit/middleware.ts'
export { audit, cache, rateLimit, redact } from './toolkit/middleware.ts'
export type { AuditEntry, CacheOptions, RateLimitOptions, Scope } from './toolkit/middleware.ts'
export { searchableTools } from './toolkit/searchable-tools.ts'
export type { SearchableToolsOptions } from './toolkit/searchable-tools.ts'
export { repairInputs } from './toolkit/middleware.ts'
export { dryRun } from './toolkit/middleware.ts'
export type { DryRunOptions } from './toolkit/middleware.ts'
