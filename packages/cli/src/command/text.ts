import type { Usage } from '@tallystick/core'
import type { Tally } from '@tallystick/core/internal'
import {
  canonicalJson,
  type Citation,
  type EventOf,
  type Json,
  type ResultPart,
  type Source,
  type UserPart,
} from '@tallystick/core/vocabulary'
import type { RunSpending } from '@tallystick/replay'
import type { Paint } from '../terminal/paint.ts'
import { fitted, padded, textWidth, visibleText } from '../terminal/text-width.ts'

/** Parts as one text; what is no text is named by its media type. */
export function contentText(parts: readonly (UserPart | ResultPart)[]): string {
  return parts.map((part) => (part.type === 'text' ? part.text : `[${thingText(part)}]`)).join('\n')
}

/** An image or a file, by its type and by what it is found by. */
function thingText(part: Exclude<UserPart | ResultPart, { readonly type: 'text' }>): string {
  const { mediaType, url, providerFile } = part
  const name = part.type === 'file' && part.name !== undefined ? [part.name] : []
  const keeper = providerFile ? [`kept by ${providerFile.provider} as ${providerFile.id}`] : []
  return [mediaType, ...name, ...(url === undefined ? [] : [url]), ...keeper].join(', ')
}

/** A text on one line, cut where it takes more than `max` columns. */
export function oneLine(text: string, max: number): string {
  // Of a text of megabytes no more is looked at than can be shown.
  const part = text.slice(0, max * 4 + 100)
  const line = visibleText(part.replaceAll(/\s+/g, ' ')).trim()
  const shown = fitted(line, max)
  return part.length < text.length && shown === line ? fitted(`${line} …`, max) : shown
}

/** A length of time, for people: `850 ms`, `1.2 s`, `3 min 20 s`, `2 h 5 min`. */
export function durationText(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`
  if (ms < 59_950) return `${(ms / 1_000).toFixed(1)} s`
  const seconds = Math.round(ms / 1_000)
  const [hours, minutes] = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60]
  return hours > 0 ? `${hours} h ${minutes} min` : `${minutes} min ${seconds % 60} s`
}

/** The same in at most six columns: `850ms`, `1.2s`, `3m20s`, `2h05m`, `12d`. */
export function shortDurationText(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)}ms`
  if (ms < 59_950) return `${(ms / 1_000).toFixed(1)}s`
  const seconds = Math.round(ms / 1_000)
  const two = (count: number): string => `${count}`.padStart(2, '0')
  if (seconds < 3_600) return `${Math.floor(seconds / 60)}m${two(seconds % 60)}s`
  const minutes = Math.round(seconds / 60)
  if (minutes < 48 * 60) return `${Math.floor(minutes / 60)}h${two(minutes % 60)}m`
  return `${Math.round(minutes / (24 * 60))}d`
}

/**
 * Returns a moment in milliseconds since 1970 UTC as people and programs read it. A store that was written by hand may
 * hold a number that is no date: it is returned as it is.
 */
export function timeText(at: number): string {
  const date = new Date(at)
  return Number.isNaN(date.getTime()) ? `${at} ms` : date.toISOString()
}

/** A text, each line of it so many columns further in. */
export function indented(text: string, columns = 2): string {
  return text.replaceAll(/^/gm, ' '.repeat(columns))
}

/** Returns JSON over lines, its keys in canonical order, whatever order they came in. */
export function prettyJson(value: Json): string {
  return JSON.stringify(JSON.parse(canonicalJson(value)), undefined, 2)
}

/**
 * Rows in columns of equal width, two spaces apart. The last column is as wide as it likes. A cell is one line, so that
 * no text can look like another row.
 */
export function table(given: readonly (readonly string[])[]): string {
  const rows = given.map((row) => row.map((cell) => visibleText(cell).replaceAll(/[\n\t]+/g, ' ')))
  const widths: number[] = []
  for (const row of rows) {
    row.forEach((cell, column) => (widths[column] = Math.max(widths[column] ?? 0, textWidth(cell))))
  }
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) => (column === row.length - 1 ? cell : padded(cell, widths[column] ?? 0)))
      .join('  ')
  return rows.map((row) => `${line(row)}\n`).join('')
}

const tabColumns = 8

/**
 * Returns a text as the rows that it takes on a terminal: visible, and broken at the last column. A character outside
 * ASCII counts as two columns, which none exceeds, so that no row is broken by the terminal itself.
 */
export function wrappedLines(text: string, columns: number): readonly string[] {
  return visibleText(text)
    .split('\n')
    .flatMap((line) => rowsOf(line, Math.max(tabColumns, columns)))
}

function rowsOf(line: string, columns: number): readonly string[] {
  const rows: string[] = []
  let [row, width] = ['', 0]
  for (const character of line) {
    const wide = character === '\t' ? tabColumns : character < '\u0080' ? 1 : 2
    if (width + wide > columns) {
      rows.push(row)
      ;[row, width] = ['', 0]
    }
    row += character
    width += wide
  }
  return [...rows, row]
}

/** How a run ended, on one line. */
export function runEnding(event: EventOf<'run_finished'>): string {
  const { reason, detail, turns, toolCalls, usage, costUsd } = event
  const facts = [
    reason + (detail === undefined ? '' : ` (${detail})`),
    counted(turns, 'turn'),
    counted(toolCalls, 'tool call'),
    usageText(usage),
  ]
  if (costUsd !== undefined) facts.push(`$${costUsd.toFixed(4)}`)
  return facts.join(', ')
}

/** Tokens on one line; a number that no provider gave is a question mark. */
export function usageText({ inputTokens, outputTokens }: Usage): string {
  return `${inputTokens ?? '?'} tokens in, ${outputTokens ?? '?'} out`
}

/** What a stretch of a run took, on one line. */
export function spentText({ turns, toolCalls, reused, usage, costUsd }: RunSpending): string {
  const served = reused === 0 ? [] : [`${counted(reused, 'result')} from the record`]
  const cost = costUsd === undefined ? [] : [`$${costUsd.toFixed(4)}`]
  return [counted(turns, 'turn'), counted(toolCalls, 'tool call'), ...served, usageText(usage), ...cost].join(
    ', ',
  )
}

/** `1 turn`, `2 turns`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

/** The two halves of the tally, on one line. */
export function tallyText({ requests, results, open }: Tally): string {
  const names = open.length === 0 ? '' : ` (${open.join(', ')})`
  return `${counted(requests, 'request')}, ${counted(results, 'result')}, ${open.length} open${names}`
}

const maxQuoteLength = 120

/** What a text leans on, or what was found, one line each: where it is to be read, and what it says. */
export function citationLines(
  citations: readonly (Citation | Source)[] | undefined,
  paint: Paint,
): readonly string[] {
  return (citations ?? []).map(
    (citation, at) => `${paint('cyan', `[${at + 1}]`)} ${paint('dim', sourceText(citation))}`,
  )
}

function sourceText({ title, url, fileId, pages, quote }: Citation): string {
  const page =
    pages && (pages.from === pages.to ? `page ${pages.from}` : `pages ${pages.from} to ${pages.to}`)
  const where = [title, url, fileId, page].filter((one) => one !== undefined)
  const quoted = quote === undefined ? [] : [`“${oneLine(quote, maxQuoteLength)}”`]
  return oneLine([where.join(', '), ...quoted].join(' '), 4 * maxQuoteLength)
}
