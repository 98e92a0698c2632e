import type { Json } from '@tallystick/core/vocabulary'
import type { StatementRequest } from './protocol.ts'

/** A value as SQLite gives it out; integers are bigints. */
export type Cell = null | string | number | bigint | Uint8Array
/** A value as SQLite takes it in. */
export type Binding = null | string | number | bigint

/** Parameters as SQLite takes them: whole numbers as integers, since `?` of a JavaScript number is a REAL. */
export function bindingsOf(
  parameters: StatementRequest['parameters'],
): readonly Binding[] | readonly [Readonly<Record<string, Binding>>] {
  if (Array.isArray(parameters)) return parameters.map(bindingOf)
  const named = Object.entries(parameters).map(([name, value]) => [
    name.replace(/^[:@$]/, ''),
    bindingOf(value),
  ])
  return [Object.fromEntries(named) as Record<string, Binding>]
}

function bindingOf(value: unknown): Binding {
  if (typeof value === 'boolean') return value ? 1n : 0n
  if (typeof value === 'number' && Number.isSafeInteger(value)) return BigInt(value)
  return value as Binding
}

/** Bytes that a value takes, at least, as JSON; known without making the JSON. */
export function bytesAtLeast(cell: Cell): number {
  if (typeof cell === 'string') return cell.length
  return cell instanceof Uint8Array ? cell.length : 1
}

/**
 * A value as JSON: integers beyond 2^53 as their digits in a string, blobs as `{ base64, bytes }`, infinities as text.
 */
export function cellJson(cell: Cell): Json {
  if (typeof cell === 'bigint') {
    const number = Number(cell)
    return Number.isSafeInteger(number) ? number : cell.toString()
  }
  if (typeof cell === 'number' && !Number.isFinite(cell)) return String(cell)
  if (cell instanceof Uint8Array) {
    return { base64: Buffer.from(cell).toString('base64'), bytes: cell.length }
  }
  return cell
}
