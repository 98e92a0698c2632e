import type { Usage } from '@tallystick/core'
import type { Tally } from '@tallystick/core/internal'
import {
  toCanonicalJson,
  type Citation,
  type EventOf,
  type Json,
  type Source,
} from '@tallystick/core/vocabulary'
import type { RunSpending } from '@tallystick/replay'
import type { Paint } from '../terminal/paint.ts'
import { fitText, padText, measureText, makeVisible } from '../terminal/text-width.ts'

/** Puts a text on one line, cut at `max` columns. */
export function toOneLine(text: string, max: number): string {
  // Of a long text only as much is looked at as can be shown.
  const part = text.slice(0, max * 4 + 100)
  const line = makeVisible(part.replaceAll(/\s+/g, ' ')).trim()
  const shown = fitText(line, max)
  return part.length < text.length && shown === line ? fitText(`${line} …`, max) : shown
}

/** Such as `850 ms`, `1.2 s`, `3 min 20 s`, `2 h 5 min`. */
export function formatDuration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`
  if (ms < 59_950) return `${(ms / 1_000).toFixed(1)} s`
  const seconds = Math.round(ms / 1_000)
  const [hours, minutes] = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60]
  return hours > 0 ? `${hours} h ${minutes} min` : `${minutes} min ${seconds % 60} s`
}

/** In at most six columns: `850ms`, `1.2s`, `3m20s`, `2h05m`, `12d`. */
export function formatShortDuration(ms: number): string {
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
 * Formats milliseconds since 1970 UTC as a date and time. A store that was written by hand may hold a number that is not a
 * date: it is returned as it is.
 */
export function formatTime(at: number): string {
  const date = new Date(at)
  return Number.isNaN(date.getTime()) ? `${at} ms` : date.toISOString()
}

export function indent(text: string, columns = 2): string {
  return text.replaceAll(/^/gm, ' '.repeat(columns))
}

/** JSON over lines, with its keys in canonical order. */
export function formatJson(value: Json): string {
  return JSON.stringify(JSON.parse(toCanonicalJson(value)), undefined, 2)
}

/**
 * Rows in columns of equal width, two spaces apart; the last column has any width. A cell is one line, so that no text can
 * look like another row.
 */
export function formatTable(given: readonly (readonly string[])[]): string {
  const rows = given.map((row) => row.map((cell) => makeVisible(cell).replaceAll(/[\n\t]+/g, ' ')))
  const widths: number[] = []
  for (const row of rows) {
    row.forEach((cell, column) => (widths[column] = Math.max(widths[column] ?? 0, measureText(cell))))
  }
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) => (column === row.length - 1 ? cell : padText(cell, widths[column] ?? 0)))
      .join('  ')
  return rows.map((row) => `${line(row)}\n`).join('')
}

const tabColumns = 8

/**
 * Breaks a text into the rows that it takes on a terminal, with hidden characters made visible. A character outside ASCII
 * counts as two columns, the most that any takes, so that the terminal itself breaks no row.
 */
export function wrapLines(text: string, columns: number): readonly string[] {
  return makeVisible(text)
    .split('\n')
    .flatMap((line) => wrapRow(line, Math.max(tabColumns, columns)))
}

function wrapRow(line: string, columns: number): readonly string[] {
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

export function formatEnding(event: EventOf<'run_finished'>): string {
  const { reason, detail, turns, toolCalls, usage, costUsd } = event
  return joinFacts([
    reason + (detail === undefined ? '' : ` (${detail})`),
    formatCount(turns, 'turn'),
    formatCount(toolCalls, 'tool call'),
    formatUsage(usage),
    formatCost(costUsd),
  ])
}

/** Lists facts; an empty one is left out. */
export function joinFacts(facts: readonly string[]): string {
  return facts.filter((fact) => fact !== '').join(', ')
}

/** In US dollars; empty if unknown. */
export function formatCost(costUsd: number | undefined): string {
  return costUsd === undefined ? '' : `$${costUsd.toFixed(4)}`
}

/** A number that no provider gave is a question mark. */
export function formatUsage({ inputTokens, outputTokens }: Usage): string {
  return `${inputTokens ?? '?'} tokens in, ${outputTokens ?? '?'} out`
}

export function formatSpent({ turns, toolCalls, reused, usage, costUsd }: RunSpending): string {
  return joinFacts([
    formatCount(turns, 'turn'),
    formatCount(toolCalls, 'tool call'),
    reused === 0 ? '' : `${formatCount(reused, 'result')} from the record`,
    formatUsage(usage),
    formatCost(costUsd),
  ])
}

/** `1 turn`, `2 turns`. */
export function formatCount(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

export function formatTally({ requests, results, open }: Tally): string {
  const names = open.length === 0 ? '' : ` (${open.join(', ')})`
  return `${formatCount(requests, 'request')}, ${formatCount(results, 'result')}, ${open.length} open${names}`
}

const maxQuoteLength = 120

/** A line for each source of a text: where to read it, and its words. */
export function formatCitations(
  citations: readonly (Citation | Source)[] | undefined,
  paint: Paint,
): readonly string[] {
  return (citations ?? []).map(({ title, url, fileId, pages, quote }: Citation, at) => {
    const page =
      pages && (pages.from === pages.to ? `page ${pages.from}` : `pages ${pages.from} to ${pages.to}`)
    const where = [title, url, fileId, page].filter((one) => one !== undefined)
    const quoted = quote === undefined ? [] : [`“${toOneLine(quote, maxQuoteLength)}”`]
    const source = toOneLine([where.join(', '), ...quoted].join(' '), 4 * maxQuoteLength)
    return `${paint('cyan', `[${at + 1}]`)} ${paint('dim', source)}`
  })
}
