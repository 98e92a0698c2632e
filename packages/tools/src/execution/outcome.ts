import type { Outcome, ResultPart, ToolEffect } from '@tallystick/core/vocabulary'
import { boundedText } from '../content/bounded-text.ts'
import { contentOf } from '../content/content.ts'
import { ToolError } from './tool-error.ts'

const maxErrorCharacters = 2_000
const maxMessageCharacters = 16_000

/** How one call ended, as the model will read it. */
export interface Ending {
  readonly outcome: Outcome
  readonly content: readonly ResultPart[]
  /** What the model reads in the place of `content`. */
  readonly projected?: readonly ResultPart[]
  /** The exception behind the ending, unless the tool threw it for the model to read. */
  readonly thrown?: unknown
}

/** An ending that is one text. */
export function textEnding(outcome: Outcome, text: string): Ending {
  return { outcome, content: [{ type: 'text', text }] }
}

/** What a tool returned, as an ending: `success`, or `failed` where JSON cannot carry it. */
export function endingOf(returned: unknown, effect: ToolEffect): Ending {
  try {
    return { outcome: 'success', content: contentOf(returned) }
  } catch (error) {
    const done = effect === 'write' ? ' What it does has been done: do not call it again for that.' : ''
    const why = boundedText(describeError(error), maxErrorCharacters)
    return {
      ...textEnding('failed', `The tool ran, but what it returned cannot be shown (${why}).${done}`),
      thrown: error,
    }
  }
}

/** What a tool threw, as an ending. The model reads name and message only: a stack helps no model, and names the caller's files. */
export function failureOf(thrown: unknown): Ending {
  const own = ownWords(thrown)
  if (own) return textEnding(own.outcome, boundedText(own.message, maxMessageCharacters))
  return { ...textEnding('failed', boundedText(describeError(thrown), maxErrorCharacters)), thrown }
}

/** A call that was stopped on request; `thrown` is what the tool threw at that. */
export function cancellationOf(reason: string, effect: ToolEffect, thrown: unknown): Ending {
  const message = ownWords(thrown)?.message
  const own = message === undefined ? '' : ` ${boundedText(message, maxMessageCharacters)}`
  const partly =
    effect === 'write' ? ' It may have done part of its work: check before calling it again.' : ''
  return textEnding('cancelled', `The call was cancelled${because(reason)}.${partly}${own}`)
}

/** A call that was stopped on request before the tool began. */
export function cancelledUnstarted(reason: string): Ending {
  return textEnding('cancelled', `The call was cancelled${because(reason)}. Nothing was run.`)
}

function because(reason: string): string {
  return reason === '' ? '' : `: ${boundedText(reason, maxErrorCharacters).replace(/\.$/, '')}`
}

// A thrown value may be anything, a proxy whose every trap throws included.
function ownWords(thrown: unknown): ToolError | undefined {
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
