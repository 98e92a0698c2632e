import { TallystickError } from '@tallystick/core'
import type { Outcome, ResultPart, ToolEffect } from '@tallystick/core/vocabulary'
import { toContent, toJson } from './content.ts'
import type { InputIssue, Parsed } from './input-issues.ts'
import type { OutputCheck } from './schema.ts'
import { boundText } from './text.ts'

/** The outcomes that a `ToolError` may have. */
export type ToolErrorOutcome = 'failed' | 'timed_out' | 'interrupted'

/** Options of a `ToolError`. */
export interface ToolErrorOptions {
  readonly outcome?: ToolErrorOutcome
  /** The same call may succeed later. Default: true if `retryAfterMs` is given. */
  readonly retryable?: boolean
  /** How many milliseconds to wait before the call is tried again, as a service asks with Retry-After. */
  readonly retryAfterMs?: number
  readonly cause?: unknown
}

/**
 * Thrown by a tool to tell the model, in exactly these words, why it failed and what to try instead. Of any other error
 * the model also reads the name. Code `tool`. `outcome` is `failed` by default; `timed_out` if the tool gave up at a
 * time limit of its own; `interrupted` if the tool cannot know how its effect ended, such as a request whose connection
 * broke: the call is in doubt. A tool with `retry` is tried again after a `ToolError` only if that is `retryable`.
 */
export class ToolError extends TallystickError {
  readonly outcome: ToolErrorOutcome
  readonly retryable: boolean
  readonly retryAfterMs: number | undefined
  constructor(message: string, options: ToolErrorOptions = {}) {
    super('tool', message, options)
    this.outcome = options.outcome ?? 'failed'
    this.retryable = options.retryable ?? options.retryAfterMs !== undefined
    this.retryAfterMs = options.retryAfterMs
  }
}

const maxErrorCharacters = 2_000
const maxMessageCharacters = 16_000

/** How one call ended, as the model will read it. */
export interface Ending {
  readonly outcome: Outcome
  readonly content: readonly ResultPart[]
  /** Replaces `content` for the model. */
  readonly projected?: readonly ResultPart[]
  /** The exception behind the ending, unless the tool threw it for the model to read. */
  readonly thrown?: unknown
}

/** An ending that is one text. */
export function createTextEnding(outcome: Outcome, text: string): Ending {
  return { outcome, content: [{ type: 'text', text }] }
}

/** Turns what a tool returned into an ending: `success`, or `failed` if JSON cannot carry it. */
export function createEnding(returned: unknown, effect: ToolEffect): Ending {
  try {
    return { outcome: 'success', content: toContent(returned) }
  } catch (error) {
    const done = effect === 'write' ? ' What it does has been done: do not call it again for that.' : ''
    const why = boundText(describeError(error), maxErrorCharacters)
    return {
      ...createTextEnding('failed', `The tool ran, but what it returned cannot be shown (${why}).${done}`),
      thrown: error,
    }
  }
}

/** The model reads name and message only: a stack helps no model, and names the caller's files. */
export function endThrown(thrown: unknown): Ending {
  const own = readToolError(thrown)
  if (own) return createTextEnding(own.outcome, boundText(own.message, maxMessageCharacters))
  const ending = createTextEnding('failed', boundText(describeError(thrown), maxErrorCharacters))
  // The port takes no field that is undefined.
  return { ...ending, thrown: thrown === undefined ? new Error('The tool threw undefined.') : thrown }
}

/** A call that was stopped on request; `thrown` is what the tool threw at that. */
export function endCancelled(reason: string, effect: ToolEffect, thrown: unknown): Ending {
  const message = readToolError(thrown)?.message
  const own = message === undefined ? '' : ` ${boundText(message, maxMessageCharacters)}`
  const partly =
    effect === 'write' ? ' It may have done part of its work: check before calling it again.' : ''
  return createTextEnding('cancelled', `The call was cancelled${describeReason(reason)}.${partly}${own}`)
}

/** A call that was stopped on request before the tool began. */
export function endUnstarted(reason: string): Ending {
  return createTextEnding('cancelled', `The call was cancelled${describeReason(reason)}. Nothing was run.`)
}

function describeReason(reason: string): string {
  return reason === '' ? '' : `: ${boundText(reason, maxErrorCharacters).replace(/\.$/, '')}`
}

// A thrown value may be anything, a proxy whose every trap throws included.
function readToolError(thrown: unknown): ToolError | undefined {
  try {
    return thrown instanceof ToolError ? thrown : undefined
  } catch {
    return undefined
  }
}

/** The name and the message of what was thrown. */
export function describeError(thrown: unknown): string {
  try {
    if (thrown instanceof Error) {
      return thrown.message === ''
        ? `${thrown.name} (without a message)`
        : `${thrown.name}: ${thrown.message}`
    }
    if (typeof thrown === 'string') return `Error: ${thrown}`
    return `Error: ${JSON.stringify(thrown) ?? `a value of type ${typeof thrown} was thrown`}`
  } catch {
    return 'Error: the tool threw something that cannot be described'
  }
}

const maxIssues = 8
const maxIssueCharacters = 200

export interface ResultRules {
  readonly effect: ToolEffect
  /** Checks what the tool returned. */
  readonly output?: OutputCheck | undefined
  /** Makes what the model reads of it. */
  readonly toModel?: ((result: never) => unknown) | undefined
}

/** Turns what a tool returned into an ending, checked against its output schema, whole and as the model sees it. */
export async function endReturned(
  returned: unknown,
  { effect, output, toModel }: ResultRules,
): Promise<Ending> {
  let checked: Parsed<unknown>
  try {
    checked = output ? await output(returned) : { ok: true, value: returned }
  } catch (error) {
    const why = boundText(describeError(error), maxIssueCharacters)
    const ending = endUnshown(returned, `could not be checked against its output schema (${why})`, effect)
    return { ...ending, thrown: error }
  }
  if (!checked.ok)
    return endUnshown(returned, 'does not fit its output schema', effect, describeIssues(checked.issues))
  const ending = createEnding(checked.value, effect)
  if (toModel === undefined || ending.outcome !== 'success') return ending
  try {
    return { ...ending, projected: toContent(await toModel(checked.value as never)) }
  } catch (error) {
    // The call has succeeded, and its result is on record: only the words for the model failed.
    const why = boundText(describeError(error), maxIssueCharacters)
    const text = `The tool has done its work, but its result cannot be shown (${why}).`
    return { ...ending, projected: [{ type: 'text', text }], thrown: error }
  }
}

function describeIssues(issues: readonly InputIssue[]): readonly string[] {
  const lines = issues.map(({ path, message }) => {
    const place = path.length === 0 ? 'the result' : path.map(String).join('.')
    return `- ${boundText(`${place}: ${message.replaceAll(/\s+/g, ' ')}`, maxIssueCharacters)}`
  })
  const more = lines.length > maxIssues ? [`- and ${lines.length - maxIssues} more`] : []
  return [...lines.slice(0, maxIssues), ...more]
}

/** The model reads why it is not shown what the tool returned, and the record holds what it was. */
function endUnshown(
  returned: unknown,
  why: string,
  effect: ToolEffect,
  lines: readonly string[] = [],
): Ending {
  const done = effect === 'write' ? ' What it does has been done: do not call it again for that.' : ''
  const reason = `The tool ran, but what it returned ${why}, so it is not shown.${done}`
  const ending = createTextEnding('failed', [reason, ...lines].join('\n'))
  const projected = ending.content
  try {
    const recorded = JSON.stringify(toJson(returned))
    return { ...ending, content: [...projected, { type: 'text', text: recorded }], projected }
  } catch {
    return { ...ending, projected }
  }
}
