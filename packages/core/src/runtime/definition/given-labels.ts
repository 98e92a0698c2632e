import type { RunLabels } from '../../events/agent-definition.ts'
import type { ToolChoice } from '../../events/model-request.ts'
import { filledText, listOf, textOr, valueThat, type OptionCheck } from '../../values/option.ts'
import { omitUndefined } from '../../values/json.ts'
import { faultOf, jsonObject } from '../../values/schema.ts'

/** Names that an application knows a run by. No model is shown them; the ledger records them. */
export interface LabelOptions {
  /** What the run is an execution of, such as `refund-desk`. */
  readonly workflowName?: string | undefined
  /** The trace that it belongs to. */
  readonly traceId?: string | undefined
  /** What binds several traces, such as a conversation. */
  readonly groupId?: string | undefined
  readonly tags?: readonly string[] | undefined
  /** More of it, as JSON. No place for keys. */
  readonly metadata?: RunLabels['metadata'] | undefined
}

/** Which tools the model must, may or must not call: `any` means that it has to call one. */
export type GivenToolChoice = 'auto' | 'any' | 'none' | { readonly type: 'tool'; readonly name: string }

const words = ['auto', 'any', 'none']

/** A choice of tools. */
export const someToolChoice: OptionCheck = textOr(
  words,
  valueThat("'auto', 'any' (it has to call a tool), 'none', or { type: 'tool', name: '…' }", (value) => {
    const { type, name } = Object(value) as { readonly type?: unknown; readonly name?: unknown }
    return type === 'tool' && typeof name === 'string' && name !== ''
  }),
)

/** Several texts. */
export const someTags: OptionCheck = listOf(filledText)

/** What JSON can carry, by names. */
export const someMetadata: OptionCheck = valueThat(
  'an object of JSON',
  (value) => faultOf(jsonObject, value) === undefined,
)

/** A choice as events record it. */
export function recordedChoice(choice: GivenToolChoice): ToolChoice {
  return typeof choice === 'string' ? { type: choice } : { type: 'tool', name: choice.name }
}

/** The labels of a run as its first event records them; `undefined` where it has none. */
export function recordedLabels(options: LabelOptions): RunLabels | undefined {
  const { workflowName, traceId, groupId, tags, metadata } = options
  const labels = omitUndefined({ workflowName, traceId, groupId, tags, metadata })
  return Object.keys(labels).length === 0 ? undefined : labels
}
