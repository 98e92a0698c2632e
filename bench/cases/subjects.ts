import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import {
  deltasOf,
  requireWhole,
  type Script,
  type ScriptedReply,
  type Seen,
  turnsScript,
} from '../subjects/script.ts'
import type { OpenedSubject, Subject } from '../subjects/subject.ts'
import type { Trial } from './case.ts'

/** Where each subject is, and what it is called there. Peers are loaded only where they are measured. */
const places: Readonly<Record<string, readonly [file: string, name: string]>> = {
  'tallystick-memory': ['tallystick.ts', 'tallystickMemory'],
  'tallystick-sqlite': ['tallystick.ts', 'tallystickSqlite'],
  'tallystick-postgres': ['tallystick.ts', 'tallystickPostgres'],
  'least-ledger': ['least-ledger.ts', 'leastLedger'],
  ai: ['peers/ai-sdk.ts', 'aiSdk'],
  'openai-agents': ['peers/openai-agents.ts', 'openaiAgents'],
  mastra: ['peers/mastra.ts', 'mastra'],
  'mastra-libsql': ['peers/mastra.ts', 'mastraLibsql'],
  langgraph: ['peers/langgraph.ts', 'langgraph'],
  'langgraph-memory': ['peers/langgraph.ts', 'langgraphMemory'],
  'langgraph-sqlite': ['peers/langgraph.ts', 'langgraphSqlite'],
  'langgraph-postgres': ['peers/langgraph.ts', 'langgraphPostgres'],
  pi: ['peers/pi.ts', 'pi'],
}

export const tallysticks: readonly string[] = ['tallystick-sqlite', 'tallystick-memory']
/** The least code that keeps as much. */
export const floors: readonly string[] = ['least-ledger']
export const runtimes: readonly string[] = [
  ...['ai', 'openai-agents', 'mastra', 'mastra-libsql'],
  ...['langgraph', 'langgraph-memory', 'langgraph-sqlite', 'pi'],
]

async function loadSubject(name: string): Promise<Subject> {
  const place = places[name]
  if (place === undefined) throw new Error(`There is no subject ${name}.`)
  const [file, exported] = place
  const module = (await import(new URL(`../subjects/${file}`, import.meta.url).href)) as Record<
    string,
    Subject
  >
  return module[exported] as Subject
}

/** What a subject plays before it is measured, and how often. */
export interface WarmUp {
  readonly script: Script
  readonly times: number
  /** Where its runs are those of one conversation: the name of that. */
  readonly conversation?: string
}

/**
 * Enough turns for all code of a turn to be compiled, in enough runs for that of the start and end of a run: what an engine
 * compiled while it saw one run alone, it throws away with the second.
 */
const turns: readonly WarmUp[] = [
  { script: turnsScript(10), times: 20 },
  { script: turnsScript(200), times: 2 },
]

/** The reply of the first run of a store. */
const opening: ScriptedReply = { deltas: deltasOf(1), calls: [] }

/**
 * Opens the subject of a trial with a script, after it has played others on stores of their own, so that its code is
 * compiled, and one reply on the store that is measured, so that the store is open: what a process costs that has been up
 * for a while.
 */
export async function openWarm(
  trial: Trial,
  script: Script,
  warmUps: readonly WarmUp[] = [],
): Promise<OpenedSubject> {
  const subject = await loadSubject(trial.subject)
  const place = (name: string): { folder: string; postgres: string | undefined } => {
    const folder = join(trial.folder, name)
    mkdirSync(folder)
    return { folder, postgres: trial.postgres }
  }
  const played = trial.smoke ? [{ script: turnsScript(2), times: 1 }] : [...turns, ...warmUps]
  for (const [index, warmUp] of played.entries()) {
    const opened = await subject.open(warmUp.script, place(`warm-up-${index}`))
    for (let time = 0; time < warmUp.times; time++)
      requireWhole(warmUp.script, await opened.run(warmUp.conversation))
    await opened.close()
  }
  let isOpening = true
  const replyOf = (turn: number): ScriptedReply => (isOpening ? opening : script.replyOf(turn))
  const opened = await subject.open({ ...script, replyOf }, place('measured'))
  await opened.run()
  isOpening = false
  return opened
}

/** Throws unless all arrived; in a smoke run, also unless what is stored is sound. */
export async function requireSound(
  trial: Trial,
  script: Script,
  opened: OpenedSubject,
  seen: Seen,
): Promise<void> {
  requireWhole(script, seen)
  if (trial.smoke) await opened.verify?.()
}
