import { isJson } from './json.ts'

/** Strings are matched so that digits in them are passed over. */
const token = /"(?:[^"\\]|\\[^])*"?|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g

/**
 * Reads JSON that a model or another program wrote, and that is to be kept as it was meant. Throws an error whose message is
 * for whoever wrote the text: the text is no JSON, it holds a number that would become another one (`1e400`, or a whole
 * number of more than 2^53 that is rounded), or it is nested deeper than every store can read.
 */
export function readJson(text: string): unknown {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new SyntaxError('The input is not valid JSON.')
  }
  const fault = numberFault(text)
  if (fault !== undefined) throw new RangeError(fault)
  if (!isJson(value)) throw new RangeError('The input is nested deeper than 500 levels.')
  return value
}

function numberFault(text: string): string | undefined {
  for (const [written] of text.matchAll(token)) {
    if (written.startsWith('"') || !isChanged(written)) continue
    const shown = written.length > 60 ? `${written.slice(0, 60)}…` : written
    return `The number ${shown} cannot be read without changing it. Write it as a text where the schema takes a string, or round it.`
  }
  return undefined
}

/** Whether a number becomes another one. Digits behind the point are rounded by every reader, and are taken as they come. */
function isChanged(written: string): boolean {
  const value = Number(written)
  if (!Number.isFinite(value)) return true
  if (value === 0) return /[1-9]/.test(written.split(/[eE]/)[0] as string)
  if (Number.isSafeInteger(value) || /[eE]/.test(written)) return false
  // What another program wrote from a double is read as that double.
  if (String(value) === written) return false
  const [whole, fraction = ''] = written.split('.') as [string, string?]
  return (
    Math.abs(value) > Number.MAX_SAFE_INTEGER && (/[1-9]/.test(fraction) || BigInt(whole) !== BigInt(value))
  )
}

/**
 * A fault of a value that someone else has read from JSON already, as `readJson` words it: what was written is gone, so
 * any whole number that may have been rounded counts.
 */
export function parsedFault(value: unknown): string | undefined {
  if (!isJson(value))
    return 'The input holds a number that is too large, or is nested deeper than 500 levels.'
  const rounded = unsafeIn(value)
  if (rounded === undefined) return undefined
  return `The number ${rounded} may have been rounded, since it is larger than 2^53. Write it as a text where the schema takes a string.`
}

function unsafeIn(value: unknown): number | undefined {
  if (typeof value === 'number')
    return Number.isInteger(value) && !Number.isSafeInteger(value) ? value : undefined
  if (typeof value !== 'object' || value === null) return undefined
  for (const field of Object.values(value)) {
    const found = unsafeIn(field)
    if (found !== undefined) return found
  }
  return undefined
}
