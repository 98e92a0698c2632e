import type { Ledger, RunId } from '@tallystick/core'
import { exportEvents } from '@tallystick/ledger'
import { loadInspectorPage } from './load-page.ts'
import { createPagePolicy } from './page-policy.ts'

/**
 * Yields the page with a run and its child runs in it, in pieces of one file of HTML that needs no server. What was removed from
 * the ledger is not in it. Rejects as `exportEvents` does, and before the first piece if there is no such run.
 */
export async function* exportRunPage(ledger: Ledger, runId: RunId): AsyncGenerator<string> {
  const events = exportFamily(ledger, runId)
  const first = await events.next()
  const page = await loadInspectorPage()
  const policy = await createPagePolicy(page, "'none'")
  const end = page.lastIndexOf('</body>')
  const withPolicy = page
    .slice(0, end)
    .replace('<head>', `<head><meta http-equiv="Content-Security-Policy" content="${policy}">`)
  yield `${withPolicy}<script type="application/jsonl" id="export" data-title="${runId}">`
  for (let line = first; line.done !== true; line = await events.next()) yield `${escapeLine(line.value)}\n`
  yield `</script>${page.slice(end)}`
}

/** In a script, the text of an event is JSON with no character that HTML looks for. */
function escapeLine(line: string): string {
  return line.replaceAll('<', String.raw`\u003c`)
}

/** The lines of an export of a run, and of its child runs after it. */
async function* exportFamily(ledger: Ledger, runId: RunId): AsyncGenerator<string> {
  const waiting = [runId]
  const seen = new Set(waiting)
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    for await (const line of exportEvents(ledger, next)) {
      yield line
      const child = readChild(line)
      // A call may have begun, and its process died, before the child run was there.
      if (child === undefined || seen.has(child) || (await ledger.head(child)) === undefined) continue
      seen.add(child)
      waiting.push(child)
    }
  }
}

function readChild(line: string): RunId | undefined {
  if (!line.includes('"type":"tool_started"')) return undefined
  const { type, child } = JSON.parse(line) as { readonly type: string; readonly child?: RunId }
  return type === 'tool_started' ? child : undefined
}
