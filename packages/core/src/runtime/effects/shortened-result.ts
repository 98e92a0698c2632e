import type { ResultPart } from '../../events/content.ts'
import { readResultName } from '../../events/model-request.ts'
import type { ToolCallId } from '../../values/ids.ts'

/** How a result is shown. */
export interface Showing {
  /** The most characters of text; no limit where `undefined`. */
  readonly max: number | undefined
  readonly toolCallId: ToolCallId
  /** Whether the agent has a tool that reads the rest. */
  readonly isReadable: boolean
}

/** The share of the shown text that the beginning gets. The end gets the rest: it often holds errors and totals. */
const HEAD_SHARE = 3 / 4

/**
 * A result as the model is shown it: the same parts where its texts are short enough, else their beginning and their end,
 * and between them what was left out and how to get it. Images and files stay.
 */
export function shortenedResult(content: readonly ResultPart[], showing: Showing): readonly ResultPart[] {
  const { max = Infinity } = showing
  const length = lengthOf(content)
  if (length <= max) return content
  const headEnd = wholeCharacter(content, Math.floor(max * HEAD_SHARE))
  const tailStart = wholeCharacter(content, length - (max - headEnd))
  const note = leftOut({ headEnd, tailStart, length }, showing)
  const shown: ResultPart[] = []
  let place = 0
  let isNoted = false
  for (const part of content) {
    if (part.type !== 'text') {
      shown.push(part)
      continue
    }
    const { text } = part
    const isCut = place + text.length > headEnd && place < tailStart
    const head = text.slice(0, Math.max(0, headEnd - place))
    // A text that is cut begins before this place.
    const tail = text.slice(tailStart - place)
    const shortened = isCut ? `${head}${isNoted ? '' : note}${tail}` : text
    place += text.length
    isNoted ||= isCut
    if (shortened !== '') shown.push({ ...part, text: shortened })
  }
  return shown
}

/** Whether a result has more characters of text than this. */
export function isLonger(content: readonly ResultPart[], max: number = Infinity): boolean {
  return lengthOf(content) > max
}

function lengthOf(content: readonly ResultPart[]): number {
  return content.reduce((sum, part) => sum + (part.type === 'text' ? part.text.length : 0), 0)
}

/** The same place in the texts, or the one before it where it would cut a character in two. */
function wholeCharacter(content: readonly ResultPart[], place: number): number {
  let from = 0
  for (const part of content) {
    if (part.type !== 'text') continue
    const at = place - from
    if (at > 0 && at < part.text.length) {
      return (part.text.codePointAt(at - 1) ?? 0) > 0xffff ? place - 1 : place
    }
    from += part.text.length
  }
  return place
}

function leftOut(
  {
    headEnd,
    tailStart,
    length,
  }: { readonly headEnd: number; readonly tailStart: number; readonly length: number },
  { toolCallId, isReadable }: Showing,
): string {
  const how = isReadable
    ? `Read on with ${readResultName}: {"call":"${toolCallId}","from":${headEnd}}.`
    : 'Ask for a smaller part if you need them.'
  return `\n[${tailStart - headEnd} of ${length} characters are left out here, from ${headEnd} to ${tailStart}. ${how}]\n`
}
