// What the next run of a session costs, when more and more runs come before it: its time, and the bytes that the store
// grows by. Each run says as much as the others. Usage: sessions.ts [RUNS] [CHARACTERS] [LEDGER], where LEDGER is
// `memory`, a file, or the connection string of a database; a file of its own where not given.
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createRuntime, defineAgent, memoryLedger, type Ledger } from '@tallystick/core'
import { scriptedModel, testTool, type ScriptedStep } from '@tallystick/testkit'
import { postgresLedger } from '../src/postgres/postgres-ledger.ts'
import { sqliteLedger } from '../src/sqlite/sqlite-ledger.ts'
import { verifyLedger } from '../src/verify/verify.ts'

const [runs = 400, characters = 6_250] = process.argv.slice(2, 4).map(Number)
const [, , , , given] = process.argv
const folder = mkdtempSync(join(tmpdir(), 'tallystick-bench-'))
const file = given === undefined || !/:|^memory$/.test(given) ? (given ?? join(folder, 'runs.db')) : undefined
const group = Math.max(1, Math.floor(runs / 8))

function opened(): Ledger {
  if (file !== undefined) return sqliteLedger(file)
  return given === 'memory' ? memoryLedger() : postgresLedger({ connectionString: given ?? '' })
}

/** Of the file and its log. */
function bytesStored(): number {
  if (file === undefined) return NaN
  return [file, `${file}-wal`].reduce(
    (sum, path) => sum + (statSync(path, { throwIfNoEntry: false })?.size ?? 0),
    0,
  )
}

const quarter = 'word '.repeat(characters / 20)
const usage = { inputTokens: 1200, outputTokens: 80 }
const steps = Array.from({ length: runs }).flatMap((): ScriptedStep[] => [
  { text: quarter, toolCalls: [{ name: 'look', input: { at: 'tea' } }], usage },
  { text: quarter, usage },
])
const ledger = opened()
const agent = defineAgent({
  ...{ name: 'host', instructions: 'Help.', model: scriptedModel(steps) },
  tools: [testTool({ name: 'look', run: () => quarter })],
})
const session = createRuntime({ ledger, agents: [agent] }).session(`bench ${process.pid} ${Date.now()}`)
console.log(`${runs} runs of one session, each of which says ${characters} characters`)
console.log('run        ms a run      bytes a run')
let bytes = bytesStored()
for (let first = 1; first <= runs; first += group) {
  const begun = performance.now()
  const last = Math.min(first + group - 1, runs)
  for (let run = first; run <= last; run++) await (await session.run(agent, quarter)).result
  const count = last - first + 1
  const ms = (performance.now() - begun) / count
  const grown = (bytesStored() - bytes) / count
  bytes = bytesStored()
  const cells = [String(last).padEnd(6), ms.toFixed(1).padStart(12)]
  console.log(...cells, Number.isNaN(grown) ? '' : Math.round(grown).toLocaleString('en').padStart(16))
}
const begun = performance.now()
for await (const verdict of verifyLedger(ledger)) if (!verdict.ok) throw new Error('The ledger is not sound.')
console.log(`verified in ${Math.round(performance.now() - begun)} ms`)
await ledger.close()
if (file !== undefined) console.log(`${bytesStored().toLocaleString('en')} bytes in the end`)
rmSync(folder, { recursive: true, force: true })
