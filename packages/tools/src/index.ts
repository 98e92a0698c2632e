// Defining tools.
export { defineTool } from './definition/define-tool.ts'
export type {
  ReconcileAnswer,
  ReconcileContext,
  ResultOf,
  ReturnedFor,
  ToolSpecification,
} from './definition/tool-specification.ts'
export type { ToolContext } from './execution/executor.ts'
export type { InputOf, InputSchema } from './input/schema.ts'

// What a tool gives back.
export { file, image, json, text } from './content/content.ts'
export type { FileSource, ImageSource, Source } from './content/content.ts'
export { settledLater } from './execution/deferral.ts'
export type { Deferral } from './execution/deferral.ts'
export { ToolError } from './execution/tool-error.ts'
export type { ToolErrorOptions, ToolErrorOutcome } from './execution/tool-error.ts'
export type { RetryOptions } from './execution/retry.ts'
export type { TraceparentOf } from './execution/traceparent.ts'

// When a person decides.
export { allOf, anyOf, whenInput } from './approval/approval.ts'
export type {
  ApprovalAnswer,
  ApprovalContext,
  ApprovalFunction,
  ApprovalPolicy,
} from './approval/approval.ts'

// Around tools.
export { readResult } from './toolkit/read-result.ts'
export type { ReadResultOptions } from './toolkit/read-result.ts'
export { todoList } from './toolkit/todo-list.ts'
export type { TodoListOptions } from './toolkit/todo-list.ts'
export { wrapTools } from './toolkit/middleware.ts'
export type { MiddlewareCall, MiddlewareEnding, ToolMiddleware } from './toolkit/middleware.ts'
export { audit, cache, rateLimit, redact } from './toolkit/ready-middleware.ts'
export type { AuditEntry, CacheOptions, RateLimitOptions, Scope } from './toolkit/ready-middleware.ts'
export { searchableTools } from './toolkit/searchable-tools.ts'
export type { SearchableToolsOptions } from './toolkit/searchable-tools.ts'
export { repairInputs } from './toolkit/repair-inputs.ts'
export { dryRun } from './toolkit/dry-run.ts'
export type { DryRunOptions } from './toolkit/dry-run.ts'
