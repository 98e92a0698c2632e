import { ConfigurationError } from '../../vocabulary/errors.ts'
import { requireOptions } from '../../vocabulary/options/require-options.ts'
import type { AnyContext } from '../../vocabulary/agent/any-context.ts'
import type { Message, Outcome, ResultPart, UserMessage, UserPart } from '../../vocabulary/model/content.ts'
import type { RunId, ToolCallId } from '../../vocabulary/values/ids.ts'
import type { JsonObject } from '../../vocabulary/values/json.ts'
import {
  anyFunction,
  fields,
  filledText,
  maybe,
  numberFrom,
  oneOf,
  trueOrFalse,
  type OptionCheck,
} from '../../vocabulary/options/option.ts'

/** Where a guardrail looks. */
export interface GuardrailContext<Context = unknown> {
  readonly runId: RunId
  /** The active agent. */
  readonly agent: string
  readonly turn: number
  /** The history so far. */
  readonly messages: readonly Message[]
  /** What the application gave this run. Never recorded. */
  readonly context: Context
}

/**
 * What a guardrail says:
 * - `pass`: nothing found
 * - `block`: what was found. On input and output the run ends as `guardrail`; a tool call is not run, or its result is
 *   withheld from the model
 * - `replace`: what stands in its place from here on; `why` goes on record
 * - `record`: what was found, and nothing follows from it
 */
export type GuardrailVerdict<Replacement> =
  | 'pass'
  | { readonly block: string }
  | { readonly replace: Replacement; readonly why?: string }
  | { readonly record: string }

type Check<Subject, Replacement, Context> = (
  subject: Subject,
  context: GuardrailContext<Context>,
) => GuardrailVerdict<Replacement> | Promise<GuardrailVerdict<Replacement>>

/** What a user said. */
export interface GuardedInput {
  readonly text: string
  readonly message: UserMessage
}

/** What the model answered; `text` without its reasoning. */
export interface GuardedOutput {
  readonly text: string
}

/** What the model wants to call a tool with. */
export interface GuardedCall {
  readonly toolCallId: ToolCallId
  readonly name: string
  readonly input: JsonObject
}

/** What a tool answered. */
export interface GuardedResult extends GuardedCall {
  readonly outcome: Outcome
  readonly text: string
  readonly content: readonly ResultPart[]
}

interface Named {
  /** Names the guardrail in the ledger. */
  readonly name: string
  /** Milliseconds until a check that does not end counts as failed; 60,000 where not given. */
  readonly timeoutMs?: number | undefined
}

/** Looks at every message of the user before a model is shown it, or, with `beside`, while the model is at work. */
export interface InputGuardrail<Context = AnyContext> extends Named {
  readonly on: 'input'
  /** The model call does not wait: a block gives it up, and no tool is started before the check has passed. */
  readonly beside?: boolean | undefined
  readonly check: Check<GuardedInput, string | readonly UserPart[], Context>
}

/** Looks at the answer before the run ends with it. What has streamed, has streamed. */
export interface OutputGuardrail<Context = AnyContext> extends Named {
  readonly on: 'output'
  readonly check: Check<GuardedOutput, string, Context>
}

/** Looks at what a tool is called with, before anything runs and before a person is asked. */
export interface ToolInputGuardrail<Context = AnyContext> extends Named {
  readonly on: 'tool_input'
  readonly check: Check<GuardedCall, JsonObject, Context>
}

/** Looks at what a tool answered, before the model reads it. The ledger keeps what the tool said. */
export interface ToolOutputGuardrail<Context = AnyContext> extends Named {
  readonly on: 'tool_output'
  readonly check: Check<GuardedResult, string | readonly ResultPart[], Context>
}

/**
 * Policy as code, around the model and the tools of an agent. A guardrail that throws or does not answer in time has
 * found that it cannot tell: that blocks.
 */
export type Guardrail<Context = AnyContext> =
  | InputGuardrail<Context>
  | OutputGuardrail<Context>
  | ToolInputGuardrail<Context>
  | ToolOutputGuardrail<Context>

/** A guardrail, checked: throws a `ConfigurationError` for one that could not work. */
export function defineGuardrail<G extends Guardrail>(made: G): G {
  requireOptions('defineGuardrail', guardrail, made)
  return made
}

const named = { name: filledText, timeoutMs: maybe(numberFrom(0)), check: anyFunction } as const
const on = oneOf(['input', 'output', 'tool_input', 'tool_output'])
const elsewhere = fields<Exclude<Guardrail, InputGuardrail>>({ ...named, on })
const onInput = fields<InputGuardrail>({ ...named, on, beside: maybe(trueOrFalse) })

/** One guardrail, on whatever it looks at. */
export const guardrail: OptionCheck = (value, path) =>
  (Object(value) as Partial<Guardrail>).on === 'input' ? onInput(value, path) : elsewhere(value, path)

/** Refuses guardrails that a ledger could not tell from each other. */
export function requireGuardrailNames(agent: string, guardrails: readonly Guardrail[]): void {
  const names = new Set<string>()
  for (const { name } of guardrails) {
    if (names.has(name)) {
      throw new ConfigurationError(
        `Agent ${agent} has two guardrails named ${name}, and a ledger could not tell them apart. Rename one.`,
      )
    }
    names.add(name)
  }
}
