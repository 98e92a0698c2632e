import { ConfigurationError } from '../../values/errors.ts'
import {
  anyFunction,
  fields,
  filledText,
  maybe,
  numberFrom,
  oneOf,
  type OptionCheck,
  requireOptions,
  trueOrFalse,
} from '../../values/option.ts'
import type { AnyContext, GuardrailDefinition } from '../../events/agent-definition.ts'
import type { Message, Outcome, ResultPart, UserMessage, UserPart } from '../../events/content.ts'
import type { RunId, ToolCallId } from '../../values/ids.ts'
import type { JsonObject } from '../../values/json.ts'

/** The place in a run at which a guardrail checks. */
export interface GuardrailContext<Context = unknown> {
  readonly runId: RunId
  /** The active agent. */
  readonly agent: string
  readonly turn: number
  /** The history so far. */
  readonly messages: readonly Message[]
  /** What the application passed to this run. Never recorded. */
  readonly context: Context
}

/**
 * The verdict of a guardrail:
 * - `pass`: nothing found
 * - `block`: the reason. On input and output the run ends as `guardrail`; a tool call is not run, or its result is
 *   withheld from the model
 * - `replace`: the replacement, used from here on; `why` is recorded
 * - `record`: the finding, recorded without further effect
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

/** A message of the user. */
export interface GuardedInput {
  readonly text: string
  readonly message: UserMessage
}

/** The answer of the model; `text` is without reasoning. */
export interface GuardedOutput {
  readonly text: string
}

/** The tool call that the model requests. */
export interface GuardedCall {
  readonly toolCallId: ToolCallId
  readonly name: string
  readonly input: JsonObject
}

/** The result of a tool call. */
export interface GuardedResult extends GuardedCall {
  readonly outcome: Outcome
  readonly text: string
  readonly content: readonly ResultPart[]
}

interface Named {
  /** Names the guardrail in the ledger. */
  readonly name: string
  /** Milliseconds after which an unfinished check counts as failed; 60,000 if not given. */
  readonly timeoutMs?: number | undefined
}

/** Checks every message of the user before a model sees it or, with `beside`, in parallel with the model call. */
export interface InputGuardrail<Context = AnyContext> extends Named {
  readonly on: 'input'
  /** The model call does not wait: a block cancels it, and no tool starts before the check has passed. */
  readonly beside?: boolean | undefined
  readonly check: Check<GuardedInput, string | readonly UserPart[], Context>
}

/** Checks the answer before the run ends with it. It cannot take back text that has streamed. */
export interface OutputGuardrail<Context = AnyContext> extends Named {
  readonly on: 'output'
  readonly check: Check<GuardedOutput, string, Context>
}

/** Checks the input of a tool call, before the tool runs and before a person is asked. */
export interface ToolInputGuardrail<Context = AnyContext> extends Named {
  readonly on: 'tool_input'
  readonly check: Check<GuardedCall, JsonObject, Context>
}

/** Checks the result of a tool call, before the model reads it. The ledger keeps the tool's own result. */
export interface ToolOutputGuardrail<Context = AnyContext> extends Named {
  readonly on: 'tool_output'
  readonly check: Check<GuardedResult, string | readonly ResultPart[], Context>
}

/** Policy as code, around the model and the tools of an agent. A guardrail that throws or times out blocks. */
export type Guardrail<Context = AnyContext> =
  | InputGuardrail<Context>
  | OutputGuardrail<Context>
  | ToolInputGuardrail<Context>
  | ToolOutputGuardrail<Context>

/** Returns a checked guardrail. Throws a `ConfigurationError` for one that cannot work. */
export function defineGuardrail<G extends Guardrail>(made: G): G {
  requireOptions('defineGuardrail', guardrail, made)
  return made
}

const named = { name: filledText, timeoutMs: maybe(numberFrom(0)), check: anyFunction } as const
const on = oneOf(['input', 'output', 'tool_input', 'tool_output'])
const elsewhere = fields<Exclude<Guardrail, InputGuardrail>>({ ...named, on })
const onInput = fields<InputGuardrail>({ ...named, on, beside: maybe(trueOrFalse) })

/** Checks the options of one guardrail, for each `on`. */
export const guardrail: OptionCheck = (value, path) =>
  (Object(value) as Partial<Guardrail>).on === 'input' ? onInput(value, path) : elsewhere(value, path)

/** A guardrail as the ledger names it. */
export function definedGuardrail(made: Guardrail): GuardrailDefinition {
  const { name, on } = made
  return { name, on, ...(on === 'input' && made.beside && { beside: true as const }) }
}

/** Refuses two guardrails with the same name: the ledger could not tell them apart. */
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
