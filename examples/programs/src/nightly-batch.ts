// A nightly batch: each document is a run, eight at a time, and a report in the morning. Start it again, and it does only the rest.
//   node nightly-batch.ts FOLDER [DATE]
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { createRuntime, defineAgent } from '@tallystick/core'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { scriptedModel } from '@tallystick/testkit'
import { z } from 'zod'

const [folder = 'documents', night = new Date().toISOString().slice(0, 10)] = process.argv.slice(2)

// A script plays the model, and reports what it would have used: use anthropic('…') or openai('…') instead.
const model = scriptedModel(
  Array.from({ length: 1_000 }, () => ({ messages }) => {
    const asked = messages[0]?.role === 'user' ? messages[0].parts : []
    const document = asked.map((part) => (part.type === 'text' ? part.text : '')).join('')
    const usage = { inputTokens: 40 + document.length, outputTokens: 20 }
    // One kind of document makes the service refuse: the batch has to go on, and the report to say so.
    if (document.includes('unreadable')) return { usage, fail: 'content_filtered' }
    const category = /invoice|complaint/i.exec(document)?.[0].toLowerCase() ?? 'other'
    return { usage, text: JSON.stringify({ category, isUrgent: document.includes('!') }) }
  }),
)
const agent = defineAgent({
  name: 'sorter',
  instructions: 'Say what kind of document this is.',
  model,
  output: z.object({ category: z.enum(['invoice', 'complaint', 'other']), isUrgent: z.boolean() }),
  limits: { maxCostUsd: 0.05, maxDurationMs: 120_000 },
})
const ledger = sqliteLedger('nightly-batch.db')
const prices = { 'scripted-1': { inputUsd: 3, outputUsd: 15 } }
const runtime = createRuntime({ ledger, agents: [agent], prices })

const files = (await readdir(folder)).sort()
const waiting = [...files]
const rows: { file: string; category: string; isUrgent: boolean; reason: string; costUsd: number }[] = []
/** Takes one document after another. The key makes a document that was done last time a run that has ended. */
async function work(): Promise<void> {
  for (let file = waiting.shift(); file !== undefined; file = waiting.shift()) {
    const text = await readFile(join(folder, file), 'utf8')
    const options = { idempotencyKey: `${night} ${file}`, tags: ['nightly', night] }
    const { output, reason = 'waits', costUsd = 0 } = await runtime.run(agent, text, options).result
    const { category = 'failed', isUrgent = false } = output ?? {}
    rows.push({ file: basename(file), category, isUrgent, reason, costUsd: costUsd ?? 0 })
    if (rows.length % 20 === 0) console.log(`${rows.length} of ${files.length}`)
  }
}
await Promise.all(Array.from({ length: 8 }, work))

const count = (category: string) => rows.filter((row) => row.category === category).length
const list = (chosen: typeof rows) =>
  chosen
    .map(({ file, reason }) => `- ${file} (${reason})`)
    .sort()
    .join('\n')
const total = rows.reduce((sum, { costUsd }) => sum + costUsd, 0)
const report = `# ${rows.length} documents, ${night}

${['invoice', 'complaint', 'other', 'failed'].map((each) => `${each}: ${count(each)}`).join(', ')}.
${total.toFixed(4)} dollars.

## Urgent\n\n${list(rows.filter(({ isUrgent }) => isUrgent))}

## Failed\n\n${list(rows.filter(({ category }) => category === 'failed'))}
`
await writeFile('report.md', report)
console.log(report)
await ledger.close()
