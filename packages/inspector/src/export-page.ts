import { ConfigurationError, type Ledger, type RunId } from '@tallystick/core'
import { exportEvents, readRecord } from '@tallystick/ledger'
import { loadInspectorPage } from './load-page.ts'
import { createPagePolicy } from './page-policy.ts'

/**
 * Yields the page with a run and its child runs in it, in pieces of one file of HTML that needs no server: their events, and the rows
 * that the hashes of the ledger cover, so that the page verifies them. What was removed from the ledger is not in it. Rejects as `exportEvents` does, and before the first piece if there is no such run.
 */
export async function* exportRunPage(ledger: Ledger, runId: RunId): AsyncGenerator<string> {
  const family: RunId[] = [runId]
  const events = exportFamily(ledger, family)
  const first = await events.next()
  const page = await loadInspectorPage()
  const policy = await createPagePolicy(page, "'none'")
  const end = page.lastIndexOf('</body>')
  const withPolicy = page
    .slice(0, end)
    .replace('<head>', `<head><meta http-equiv="Content-Security-Policy" content="${policy}">`)
  yield `${withPolicy}<script type="application/jsonl" id="export" data-title="${runId}">`
  for (let line = first; line.done !== true; line = await events.next()) yield `${escapeLine(line.value)}\n`
  yield '</script>'
  for (const each of family) yield* exportRows(ledger, each)
  yield page.slice(end)
}

/** In a script, the text of an event is JSON with no character that HTML looks for. */
function escapeLine(line: string): string {
  return line.replaceAll('<', String.raw`\u003c`)
}

/** The rows of a run, in an element of their own; nothing of a ledger that has none. */
async function* exportRows(ledger: Ledger, runId: RunId): AsyncGenerator<string> {
  let after = 0
  try {
    for (;;) {
      const rows = await readRecord(ledger, runId, { after })
      if (after === 0) yield `<script type="application/jsonl" id="record-${runId}">`
      for (const row of rows) yield `${escapeLine(JSON.stringify(row))}\n`
      if (rows.length === 0) break
      after += rows.length
    }
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error
    return
  }
  yield '</script>'
}

/** The lines of an export of the runs of a list, to which their child runs are added. */
async function* exportFamily(ledger: Ledger, family: RunId[]): AsyncGenerator<string> {
  const seen = new Set(family)
  for (const runId of family) {
    for await (const line of exportEvents(ledger, runId)) {
      yield line
      const child = readChild(line)
      // A call may have begun, and its process died, before the child run was there.
      if (child === undefined || seen.has(child) || (await ledger.head(child)) === undefined) continue
      seen.add(child)
      family.push(child)
    }
  }
}

function readChild(line: string): RunId | undefined {
  if (!line.includes('"type":"tool_started"')) return undefined
  const { type, child } = JSON.parse(line) as { readonly type: string; readonly child?: RunId }
  return type === 'tool_started' ? child : undefined
}
