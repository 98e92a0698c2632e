import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { JsonObject, ToolRun } from '@tallystick/core/vocabulary'
import { type CalledTool, callTool } from '@tallystick/testkit'
import { shell, type ShellOptions } from '@tallystick/tools/shell'

/** A folder of its own for programs. */
export function programFolder(): { readonly root: string; remove(): void } {
  const folder = mkdtempSync(join(realpathSync(tmpdir()), 'tallystick-shell-'))
  const root = join(folder, 'root')
  mkdirSync(join(root, 'inner'), { recursive: true })
  return { root, remove: () => rmSync(folder, { recursive: true, force: true }) }
}

/** What a program did, as the model reads it. */
export interface Ran extends JsonObject {
  readonly exitCode: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs a text of the system's shell, which is one of the programs here. */
export async function runScript(
  options: Omit<ShellOptions, 'programs'>,
  script: string,
  { input = {}, run = {} }: { readonly input?: JsonObject; readonly run?: Partial<ToolRun> } = {},
): Promise<CalledTool> {
  const tool = shell({ ...options, programs: { sh: {} } })
  return await callTool(tool, { program: 'sh', args: ['-c', script], ...input }, run)
}

export function ranOf({ outcome, text }: CalledTool): Ran {
  if (outcome !== 'success') throw new Error(`${outcome}: ${text}`)
  return JSON.parse(text) as Ran
}

/** Whether a process runs: one that has ended and was not yet collected does not. */
export function isRunning(processId: number): boolean {
  try {
    const state = execFileSync('ps', ['-o', 'stat=', '-p', String(processId)], { encoding: 'utf8' })
    return !state.trim().startsWith('Z')
  } catch {
    return false
  }
}

/** Resolves when none of these runs: the system takes a moment to end what it was told to end, and closes its output before. */
export async function haveEnded(processIds: readonly number[]): Promise<void> {
  while (processIds.some(isRunning)) await new Promise((resolve) => setImmediate(resolve))
}

/** The processes that this one has started and not yet collected. */
export function startedProcesses(): number {
  return process.getActiveResourcesInfo().filter((resource) => resource === 'ProcessWrap').length
}

/** The handles of what has ended are closed at the end of a turn of the event loop. */
export async function handlesClosed(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve))
}
