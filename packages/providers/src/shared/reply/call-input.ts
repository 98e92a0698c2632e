import { isJsonObject, parsedFault, readJson } from '@tallystick/core/kit'
import type { RequestedCall } from '@tallystick/core/vocabulary'

/** The input of a call as it was understood. */
export type CallInput = Pick<RequestedCall, 'input' | 'malformed'>

/** Reads a call's arguments, once they are whole. No arguments at all mean an empty object. */
export function readCallInput(text: string): CallInput {
  if (text.trim() === '') return { input: {} }
  try {
    const input = readJson(text)
    if (isJsonObject(input)) return { input }
    return notAnObject(text)
  } catch (error) {
    return { input: {}, malformed: { text, error: (error as Error).message } }
  }
}

/** The input of a call that its service sent as JSON, not as text. */
export function readGivenInput(given: unknown): CallInput {
  if (given === undefined || given === null) return { input: {} }
  if (typeof given === 'string') return readCallInput(given)
  const fault = parsedFault(given)
  if (fault !== undefined) return { input: {}, malformed: { text: shownText(given), error: fault } }
  return isJsonObject(given) ? { input: given } : notAnObject(JSON.stringify(given))
}

/** As far as it can be written: a value may be nested too deep for that. */
function shownText(given: unknown): string {
  try {
    return JSON.stringify(given)
  } catch {
    return ''
  }
}

/** Whether arguments say nothing: some servers write null, or an empty list, for a tool without parameters. */
export function saysNothing(text: string): boolean {
  return ['', 'null', '[]'].includes(text.trim())
}

/** An input that no server can take for another, in the place of one that is no JSON: the model sees what it wrote. */
export function unreadInput(text: string): { readonly INVALID_JSON: string } {
  return { INVALID_JSON: text }
}

/** The same as text. */
export function inObject(text: string): string {
  return JSON.stringify(unreadInput(text))
}

/** The input of a call whose arguments are JSON, but no object. */
function notAnObject(text: string): CallInput {
  return { input: {}, malformed: { text, error: 'The input is valid JSON, but not an object.' } }
}
