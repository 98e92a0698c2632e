// Defining tools.
export { defineTool } from './tool.ts'
export type { ReconcileAnswer, ReconcileContext, ToolSpecification } from './tool.ts'
export type { ToolContext } from './executor.ts'
export type { InputOf, InputSchema } from './schema.ts'

// What a tool gives back.
export { file, image, json, text } from './content.ts'
export type { FileSource, ImageSource, Source } from './content.ts'
export { settledLater } from './deferral.ts'
export type { Deferral } from './deferral.ts'
export { ToolError } from './tool-error.ts'
export type { ToolErrorOutcome } from './tool-error.ts'

// When a person decides.
export { allOf, anyOf, whenInput } from './approval.ts'
export type { ApprovalAnswer, ApprovalContext, ApprovalFunction, ApprovalPolicy } from './approval.ts'
