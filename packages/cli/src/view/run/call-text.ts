import { canonicalJson, type Json } from '@tallystick/core/vocabulary'
import type { CallStory } from '../../runs/call-story.ts'
import { contentText } from '../text/content-text.ts'
import { durationText } from '../text/duration-text.ts'
import { indented } from '../text/indented.ts'
import type { Paint } from '../../terminal/paint.ts'
import { prettyJson } from '../text/pretty-json.ts'
import { table } from '../text/table.ts'

const maxInlineCharacters = 80

/** A call's input on one line where that is short, else over lines. */
export function inputText(input: Json): string {
  const line = canonicalJson(input)
  return line.length <= maxInlineCharacters ? line : prettyJson(input)
}

/** How a call ended, for a person: what was decided about it, what ran where that is not what was asked for, its result. */
export function resultText(call: CallStory, paint: Paint, waits: string | undefined): string {
  const { name, toolCallId, outcome, durationMs, reused, resultSeq, content } = call
  const which = `${name} ${paint('dim', toolCallId)}`
  if (outcome === undefined || content === undefined) {
    return `${paint('yellow', '╎ open   ')} ${which} ${waits ?? 'has no result yet'}\n${decisionText(call)}`
  }
  const took = durationMs === undefined ? '' : ` in ${durationText(durationMs)}`
  const how = reused === undefined ? took : `, as on record: nothing ran`
  const head = `${paint('cyan', '└ result ')} ${which} ${outcome}${how}${paint('dim', `, event ${resultSeq}`)}`
  return `${head}\n${decisionText(call)}${indented(contentText(content), 4)}\n`
}

/** Returns an empty text if there was no decision and no change. */
function decisionText({ requested, guarded, guardedSeq, decision, executed }: CallStory): string {
  if (guarded === undefined && decision === undefined) return ''
  const rows: string[][] = [['asked for', canonicalJson(requested)]]
  if (guarded) rows.push(['guarded', `${canonicalJson(guarded)}, event ${guardedSeq}`])
  if (decision) {
    const { approved, by, via, reason, seq } = decision
    const how = via === undefined ? '' : ` (${via})`
    const why = reason === undefined ? '' : `: ${reason}`
    rows.push([approved ? 'approved' : 'denied', `by ${by}${how}, event ${seq}${why}`])
  }
  if (executed) rows.push(['ran with', canonicalJson(executed)])
  return `${indented(table(rows).trimEnd(), 4)}\n`
}
