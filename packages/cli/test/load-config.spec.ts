import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ConfigurationError } from '@tallystick/core'
import { describe, expect, it, onTestFinished } from 'vitest'
import { importConfig } from '../src/drive/config.ts'
import { tallystick, tallystickFrom, type Ending } from './kit/tallystick.ts'

const raw = fileURLToPath(new URL('../../tools/test/mcp/servers/raw-server.ts', import.meta.url))
const [core, testing] = ['@tallystick/core', '@tallystick/testkit'].map((name) =>
  JSON.stringify(import.meta.resolve(name)),
)

/** A folder with a configuration of this text, and a file in which its `close` notes that it was called. */
function configured(configText: string): {
  readonly folder: string
  readonly path: string
  readonly closed: () => string
} {
  const folder = mkdtempSync(join(tmpdir(), 'tallystick-load-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const notes = join(folder, 'closed')
  const answers = join(folder, 'answers.json')
  writeFileSync(answers, JSON.stringify({ initialize: {}, 'tools/list': { tools: [] } }))
  const path = join(folder, 'own.config.mjs')
  writeFileSync(
    path,
    `import { appendFileSync } from 'node:fs'
    import { defineAgent } from ${core}
    import { scriptedModel } from ${testing}
    const agent = defineAgent({ name: 'host', instructions: '', model: scriptedModel([{ text: 'Hello.' }]) })
    const servers = { one: { command: process.execPath, args: ['--no-warnings', ${JSON.stringify(raw)}, ${JSON.stringify(answers)}] } }
    const close = () => appendFileSync(${JSON.stringify(notes)}, 'closed ')
    ${configText}`,
  )
  return { folder, path, closed: () => (existsSync(notes) ? readFileSync(notes, 'utf8') : '') }
}

const run = (folder: string): Promise<Ending> =>
  tallystickFrom(folder, 'run', join(folder, 'runs.db'), 'Go.', '--config', 'own.config.mjs')

describe('a configuration with servers', () => {
  it.each([
    ['a list', 'agents: [agent]'],
    ['a function of them', 'agents: (mcp) => mcp.servers.length === 1 ? [agent] : []'],
  ])(
    'given its agents as %s, when the run has ended, then what it opened is closed, once',
    async (_kind, agents) => {
      const { folder, closed } = configured(`export default { mcp: { servers }, close, ${agents} }`)
      expect(await run(folder)).toMatchObject({ code: 0 })
      expect(closed()).toBe('closed ')
    },
  )

  it('given a number for an agent, when it is loaded, then it is refused, and what it opened is closed', async () => {
    const { folder, closed } = configured(`export default { mcp: { servers }, close, agents: () => [7] }`)
    const { code, stderr } = await run(folder)
    expect(code).toBe(2)
    expect(stderr).toContain('agents[0]')
    expect(closed()).toBe('closed ')
  })

  it('given no close of its own, when the run has ended, then its servers are closed all the same', async () => {
    const { folder } = configured('export default { mcp: { servers }, agents: [agent] }')
    expect(await run(folder)).toMatchObject({ code: 0, stdout: expect.stringContaining('Hello.') as string })
  })
})

describe('a configuration that cannot be loaded', () => {
  it.each([
    [
      'an error',
      'throw new Error("out of luck")',
      'cannot be imported, so no agent is known. Correct it, or name another with --config FILE: out of luck',
    ],
    [
      'another value',
      'throw "plain"',
      'cannot be imported, so no agent is known. Correct it, or name another with --config FILE: plain',
    ],
  ])('given that it throws %s, when it is imported, then that is said', async (_what, configText, said) => {
    const { folder, path } = configured(configText)
    await expect(importConfig(path)).rejects.toThrow(ConfigurationError)
    await expect(importConfig(path)).rejects.toThrow(`${path} ${said}`)
    expect((await run(folder)).code).toBe(2)
  })

  it('given a file of a kind that Node does not know, when it is imported, then the way out is named', async () => {
    const { folder } = configured('')
    const path = join(folder, 'own.config.unknown')
    writeFileSync(path, 'export default {}')
    // By the program itself: Vite, which loads the tests of a mutant, knows every kind of file.
    const ending = await tallystick('run', join(folder, 'runs.db'), 'Go.', '--config', path)
    expect(ending).toMatchObject({ code: 2, stdout: '' })
    expect(ending.stderr).toContain(
      `${path} cannot be imported, so no agent is known: it is TypeScript, which Node`,
    )
  })

  it.each([
    'export default {}',
    'export default { agents: 7 }',
    'export const agents = []',
    'export default () => undefined',
  ])('given %j, when it is loaded, then it is said that it gives no agents', async (configText) => {
    const { folder } = configured(configText)
    const { code, stderr } = await run(folder)
    expect(code).toBe(2)
    expect(stderr).toContain('gives no agents, so nothing can drive the run')
  })
})
