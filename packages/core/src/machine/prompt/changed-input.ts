import type { ToolResult } from '../../vocabulary/model/content.ts'
import { canonicalJson, type JsonObject } from '../../vocabulary/values/json.ts'
import { getOwn } from '../../vocabulary/values/get-own.ts'
import { textContent } from '../messages/outcome-text.ts'
import type { Call } from '../state/state.ts'

/** Says what an approver changed in the input of a call, for the model that asked for another one. */
export function changedInputText(by: string, asked: JsonObject, ran: JsonObject): string {
  const keys = [...new Set([...Object.keys(asked), ...Object.keys(ran)])].toSorted()
  const changes = keys.flatMap((key) => {
    const [before, after] = [getOwn(asked, key), getOwn(ran, key)]
    if (after === undefined) return [`${JSON.stringify(key)} was left out`]
    const text = canonicalJson(after)
    if (before !== undefined && canonicalJson(before) === text) return []
    return [`${JSON.stringify(key)} was ${text}`]
  })
  return (
    `This call did not run with the input that you asked for: ${by} changed it before it ran. ` +
    `What differed: ${changes.join(', ')}. The result is that of the changed call.`
  )
}

/**
 * The result of a call as the model reads it: preceded by what was changed in its input, if it ran with another one.
 */
export function shownResult({ result, changeNote, attempts }: Call): ToolResult | undefined {
  if (result === undefined || changeNote === undefined || attempts === 0) return result
  return { ...result, content: [...textContent(result.outcome, changeNote), ...result.content] }
}
