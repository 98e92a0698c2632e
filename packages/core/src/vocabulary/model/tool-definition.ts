import type { JsonObject } from '../values/json.ts'

/** Whether a tool changes anything outside. Reads may run at the same time, writes run one by one. */
export const toolEffects = ['read', 'write'] as const
export type ToolEffect = (typeof toolEffects)[number]

/**
 * What a resume does with a call that is in doubt:
 * - `rerun`: start it again, with the same idempotency key
 * - `reconcile`: ask the outside world whether it happened
 * - `ask`: let a person decide
 * - `report`: tell the model `interrupted`, and start nothing
 */
export const recoveries = ['rerun', 'reconcile', 'ask', 'report'] as const
export type Recovery = (typeof recoveries)[number]

/** What a model sees of a tool. `inputSchema` is a JSON Schema (2020-12) of type object. */
export interface ToolDefinition {
  readonly name: string
  readonly description: string
  readonly inputSchema: JsonObject
}

/** The name of the tool that reads the rest of a result which was too long to be shown. */
export const readResultName = 'read_result'

/** Whether the model may, must or must not call tools. */
export type ToolChoice =
  | { readonly type: 'auto' }
  | { readonly type: 'any' }
  | { readonly type: 'none' }
  | { readonly type: 'tool'; readonly name: string }
