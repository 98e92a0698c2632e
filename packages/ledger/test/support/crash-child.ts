// A process that lets a user do what a scenario says, and meets its fate at a boundary. It says on stdout, as JSON, how
// that went. Usage: crash-child.ts <JSON of ChildTask>
import { TallystickError } from '@tallystick/core'
import { acknowledging } from './crash-acknowledged.ts'
import { Boundaries } from './crash-boundaries.ts'
import { watchCommits } from './crash-commits.ts'
import type { ChildEnd, ChildTask } from './crash-process.ts'
import { scenarioNamed } from './crash-scenarios.ts'
import { openStore } from './crash-store.ts'
import { userOf } from './crash-user.ts'
import { World } from './crash-world.ts'

const task = JSON.parse(process.argv[2] ?? '{}') as ChildTask
const { crossed, cross } = new Boundaries(task.fate)
const scenario = scenarioNamed(task.scenario)
const strays: string[] = []

async function play(): Promise<string | undefined> {
  watchCommits(cross)
  const ledger = acknowledging(openStore(task.store), task.acknowledged, cross)
  const stage = { world: new World(task.world), cross }
  const report = (error: unknown): void => void strays.push(String(error))
  const user = userOf(scenario, { ...stage, ledger, session: task.session, report })
  try {
    for (const step of scenario.steps.slice(task.fromStep, task.toStep)) await step(user)
    await user.runtime.idle()
    return undefined
  } catch (error) {
    if (error instanceof TallystickError) return error.name
    throw error
  } finally {
    await ledger.close()
  }
}

const failure = await play()
const end: ChildEnd = { crossed, strays, ...(failure !== undefined && { failure }) }
process.stdout.write(`${JSON.stringify(end)}\n`)
