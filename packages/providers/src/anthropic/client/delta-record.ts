import { endOfMatch, endOfText } from '../../shared/json/json-end.ts'
import type { DeltaShape } from '../../shared/stream/packed-deltas.ts'

const beforeText =
  /event: content_block_delta\ndata: \{"type":"content_block_delta","index":(?:0|[1-9]\d{0,8}),"delta":\{"type":"[a-z_]{1,40}","[a-z_]{1,40}":(?=")/y
const afterText = /\} *\}\n\n/y

/** The record of a delta that adds one text, which is the last that it says. */
export const deltaShape: DeltaShape = {
  endOfDelta(text, from) {
    const start = startOfText(text, from)
    const end = start === -1 ? -1 : endOfText(text, start)
    return end === -1 ? -1 : endOfMatch(afterText, text, end)
  },
  startOfText,
}

function startOfText(text: string, from: number): number {
  return endOfMatch(beforeText, text, from)
}
