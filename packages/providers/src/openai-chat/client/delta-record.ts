import { deltaShape as deltaOfOpenAI } from '../../openai/client/delta-record.ts'
import { endOfMatch, endOfText } from '../../shared/json/json-end.ts'
import type { DeltaShape } from '../../shared/stream/packed-deltas.ts'

// Of two fields of one name the later counts: none that comes after the text has the name of one that leads to it.
const beforeText =
  /data: \{(?:"[a-z_]{1,30}": ?(?:"[^"\\]{0,200}"|\d{1,15}|null), ?){0,8}"choices": ?\[\{"index": ?0, ?"delta": ?\{(?:"role": ?"assistant", ?)?"content": ?(?=")/y
const afterText = /\}(?:, ?"logprobs": ?null)?(?:, ?"finish_reason": ?null)?\}\](?:, ?"usage": ?null)?\}\n\n/y

/** The record of a delta; where its one choice adds words and says nothing else, the words are what it adds. */
export const deltaShape: DeltaShape = { ...deltaOfOpenAI, startOfText }

function startOfText(text: string, from: number): number | undefined {
  const start = endOfMatch(beforeText, text, from)
  const end = start === -1 ? -1 : endOfText(text, start)
  return end === -1 || endOfMatch(afterText, text, end) === -1 ? undefined : start
}
