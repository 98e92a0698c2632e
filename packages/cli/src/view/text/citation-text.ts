import type { Citation, Source } from '@tallystick/core/vocabulary'
import { oneLine } from './content-text.ts'
import type { Paint } from '../../terminal/paint.ts'

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
