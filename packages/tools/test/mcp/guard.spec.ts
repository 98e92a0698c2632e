// A host that is killed takes its servers along, with all that they started.
import childProcess, { type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { syncBuiltinESMExports } from 'node:module'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished, vi } from 'vitest'
import { connect, isAlive } from './connected.ts'
import { shellServer } from './servers/shell-server.ts'

const { spawn } = childProcess

const host = `
import { mcpTools } from '@tallystick/tools/mcp'
const mcp = await mcpTools({ servers: { bad: { command: process.execPath, args: [process.argv[1]] } } })
const [{ text: pid }] = await mcp.call('bad', 'pid', {})
const [{ text: child }] = await mcp.call('bad', 'spawn', { detached: process.platform === 'linux' })
const [{ text: sibling }] = await mcp.call('bad', 'spawn', {})
process.stdout.write(pid + ' ' + child + ' ' + sibling)
setInterval(() => {}, 1000)
`

it('ends servers when their host is killed', { timeout: 60_000 }, async () => {
  const server = fileURLToPath(new URL('servers/faulty-server.ts', import.meta.url))
  const child = spawn(process.execPath, ['--no-warnings', '--input-type=module', '-e', host, server], {
    cwd: fileURLToPath(new URL('../..', import.meta.url)),
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [said] = (await once(child.stdio[1], 'data')) as [Buffer]
  const pids = String(said).split(' ').map(Number)
  expect(pids.map(isAlive)).toEqual([true, true, true])
  child.kill('SIGKILL')
  await once(child, 'exit')
  await expect.poll(() => pids.map(isAlive), { timeout: 30_000 }).toEqual([false, false, false])
})

it('given servers that are closed, then what watches over their processes has ended as well', async () => {
  const children: ChildProcess[] = []
  const spy = vi.spyOn(childProcess, 'spawn').mockImplementation((...given: Parameters<typeof spawn>) => {
    const child = spawn(...given)
    children.push(child)
    return child
  })
  syncBuiltinESMExports()
  onTestFinished(() => {
    spy.mockRestore()
    syncBuiltinESMExports()
  })
  const manager = await connect({ own: shellServer({ tools: { work: 'answer' } }) })
  await manager.close()
  expect(children).toHaveLength(2)
  for (const { exitCode, signalCode } of children) expect(exitCode ?? signalCode).not.toBeNull()
})
