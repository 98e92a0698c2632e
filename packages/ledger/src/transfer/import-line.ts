import { ConfigurationError, LedgerDamagedError, type RuntimeEvent } from '@tallystick/core'
import { isJson } from '@tallystick/core/kit'
import { parseEvent } from '@tallystick/core/vocabulary'
import type { ImportedHistories } from './shared-history.ts'
import { upcast } from '../format/versions.ts'

/** An event that a line of an export holds. */
export interface ImportedLine {
  /** Its number, from 1. */
  readonly line: number
  /** Of its text. */
  readonly length: number
  /** As it was recorded, in whatever version. */
  readonly recorded: RuntimeEvent
  /** As today's code knows it. */
  readonly event: RuntimeEvent
}

/** Returns the JSON value of a line; `undefined` if the line is no JSON or no UTF-8, because it is torn or damaged. */
function valueOf(text: string | Uint8Array): unknown {
  try {
    return JSON.parse(textOf(text)) as unknown
  } catch {
    return undefined
  }
}

// What is no UTF-8 must not be read as something that it is not.
const decoder = new TextDecoder('utf-8', { fatal: true })

function textOf(text: string | Uint8Array): string {
  return typeof text === 'string' ? text : decoder.decode(text)
}

/** Whether a line says nothing. */
export function isBlank(text: string | Uint8Array): boolean {
  return text.length < 16 && /^\s*$/.test(typeof text === 'string' ? text : Buffer.from(text).toString())
}

/** How every line of an export begins. */
const beginning = '{"runId":"'

/**
 * Whether a line that is no JSON can be what stays where an export was ended: the beginning of an event, or the NULs that
 * a file system leaves after a loss of power.
 */
function isEventCutOff(text: string | Uint8Array): boolean {
  const head = text.slice(0, beginning.length)
  let begun = typeof head === 'string' ? head : Buffer.from(head).toString('latin1')
  while (begun.endsWith('\0')) begun = begun.slice(0, -1)
  return beginning.startsWith(begun)
}

/**
 * The event that a line holds; `undefined` where the line is an event that was cut off. Throws an `UnknownEventError` for
 * what this release does not know, and a `LedgerDamagedError` for anything else that is no event.
 */
export async function importedLine(
  line: number,
  text: string | Uint8Array,
  histories: ImportedHistories,
): Promise<ImportedLine | undefined> {
  const value = valueOf(text)
  if (value === undefined) {
    if (isEventCutOff(text)) return undefined
    throw damagedLine(line, 'it is no JSON, and not the beginning of an event.')
  }
  if (!isJson(value)) {
    throw new ConfigurationError(
      `Line ${line} cannot be imported: it is nested deeper than 500 levels, and not every store can read that. Nothing was written of it.`,
    )
  }
  try {
    const whole = await histories.whole(value)
    const event = parseEvent(isVersioned(whole) ? upcast(whole) : whole)
    return { line, length: text.length, recorded: whole as RuntimeEvent, event }
  } catch (cause) {
    if (cause instanceof LedgerDamagedError) throw damagedLine(line, cause.message, cause)
    throw cause
  }
}

function isVersioned(value: unknown): value is RuntimeEvent {
  if (typeof value !== 'object' || value === null) return false
  const { type, v } = value as { readonly type?: unknown; readonly v?: unknown }
  return typeof type === 'string' && Number.isSafeInteger(v)
}

/** The refusal of a line. */
export function damagedLine(line: number, what: string, cause?: unknown): LedgerDamagedError {
  return new LedgerDamagedError(
    `Line ${line} cannot be imported: ${what} The lines before it were imported, and importing a sound export of the ` +
      'same ledger continues from there.',
    { cause },
  )
}
