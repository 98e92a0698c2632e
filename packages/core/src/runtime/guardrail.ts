import { ConfigurationError } from '../errors.ts'
import type { Message, Outcome, ResultPart, UserMessage, UserPart } from '../vocabulary/content.ts'
import type { RunId, ToolCallId } from '../vocabulary/ids.ts'
import type { JsonObject } from '../vocabulary/json.ts'

/** Where a guardrail looks. */
export interface GuardrailContext {
  readonly runId: RunId
  /** The active agent. */
  readonly agent: string
  readonly turn: number
  /** The history so far. */
  readonly messages: readonly Message[]
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

type Check<Subject, Replacement> = (
  subject: Subject,
  context: GuardrailContext,
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
  readonly timeoutMs?: number
}

/** Looks at every message of the user before a model is shown it, or, with `beside`, while the model is at work. */
export interface InputGuardrail extends Named {
  readonly on: 'input'
  /** The model call does not wait: a block gives it up, and no tool is started before the check has passed. */
  readonly beside?: boolean
  readonly check: Check<GuardedInput, string | readonly UserPart[]>
}

/** Looks at the answer before the run ends with it. What has streamed, has streamed. */
export interface OutputGuardrail extends Named {
  readonly on: 'output'
  readonly check: Check<GuardedOutput, string>
}

/** Looks at what a tool is called with, before anything runs and before a person is asked. */
export interface ToolInputGuardrail extends Named {
  readonly on: 'tool_input'
  readonly check: Check<GuardedCall, JsonObject>
}

/** Looks at what a tool answered, before the model reads it. The ledger keeps what the tool said. */
export interface ToolOutputGuardrail extends Named {
  readonly on: 'tool_output'
  readonly check: Check<GuardedResult, string | readonly ResultPart[]>
}

/**
 * Policy as code, around the model and the tools of an agent. A guardrail that throws or does not answer in time has
 * found that it cannot tell: that blocks.
 */
export type Guardrail = InputGuardrail | OutputGuardrail | ToolInputGuardrail | ToolOutputGuardrail

/** A guardrail, checked: throws a `ConfigurationError` for one that could not work. */
export function defineGuardrail<G extends Guardrail>(guardrail: G): G {
  requireGuardrails('(none yet)', [guardrail])
  return guardrail
}

const places: readonly string[] = ['input', 'output', 'tool_input', 'tool_output']

/** Refuses guardrails that could not be asked, or told from each other in a ledger. */
export function requireGuardrails(agent: string, guardrails: readonly Guardrail[]): void {
  const names = new Set<string>()
  for (const { name, on, check } of guardrails) {
    const fault = guardrailFault(name, on, check)
    if (fault) throw new ConfigurationError(`A guardrail of agent ${agent} ${fault}.`)
    if (names.has(name)) {
      throw new ConfigurationError(
        `Agent ${agent} has two guardrails named ${name}, and a ledger could not tell them apart. Rename one.`,
      )
    }
    names.add(name)
  }
}

function guardrailFault(name: unknown, on: string, check: unknown): string | undefined {
  if (typeof name !== 'string' || name.trim() === '')
    return 'has no name, so no ledger could say what it found'
  if (!places.includes(on)) return `(${name}) is on ${on}; use one of ${places.join(', ')}`
  return typeof check === 'function' ? undefined : `(${name}) has no function check`
}
