import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { chmod, chown, mkdir, realpath, rename, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ConfigurationError } from '@tallystick/core'
import { describe, expect, it } from 'vitest'
import { isPostgres, toLedgerSource, parsePostgresPlace, hidePassword } from '../src/command/context.ts'
import { findAccessFault, importConfig } from '../src/drive/config.ts'
import { openShop, shopConfig, type Shop } from './kit/shop.ts'
import { json, tallystickFrom, tallystick, type Ending, tallystickHere } from './kit/tallystick.ts'
import { temporaryFolder } from '../../../scripts/testing/temporary-folder.ts'

/** A folder as of a repository, with a package in it, and a run on record. */
async function openRepository(): Promise<
  AsyncDisposable & {
    readonly shop: Shop
    readonly above: string
    readonly root: string
    readonly inner: string
    readonly runId: string
  }
> {
  const shop = await openShop()
  const above = await realpath(shop.folder)
  const root = join(above, 'repository')
  const inner = join(root, 'packages', 'app', 'src')
  await mkdir(inner, { recursive: true })
  const { runId } = await shop.start()
  return { shop, above, root, inner, runId, [Symbol.asyncDispose]: () => shop[Symbol.asyncDispose]() }
}

/** A configuration that gives the agents of the shop. */
async function writeConfig(folder: string): Promise<string> {
  const path = join(folder, 'tallystick.config.mjs')
  await writeFile(path, `export { default } from ${JSON.stringify(shopConfig)}\n`)
  return path
}

describe('the configuration', () => {
  it('is the nearest one up to the root of the repository, and never one above', async () => {
    await using repository = await openRepository()
    const { shop, above, root, inner, runId } = repository
    const replay = (): Promise<{ code: number | null; stderr: string }> =>
      tallystickFrom(inner, 'replay', shop.ledgerPath, runId)
    await writeConfig(above)
    const outside = await replay()
    expect(outside.code).toBe(2)
    expect(outside.stderr).toContain(`is not in ${inner}. It names the agents`)
    await mkdir(join(root, '.git'))
    expect((await replay()).stderr).toContain(`neither in ${inner} nor above it up to ${root}. It names`)
    const atRoot = await writeConfig(root)
    expect(await replay()).toMatchObject({
      code: 0,
      stderr: expect.stringContaining(`Agents are those of ${atRoot}\n`),
    })
    const nearer = await writeConfig(join(root, 'packages'))
    expect(await replay()).toMatchObject({
      code: 0,
      stderr: expect.stringContaining(`Agents are those of ${nearer}\n`),
    })
  })

  it('is looked for up to the package where there is no repository', async () => {
    await using repository = await openRepository()
    const { shop, above, root, inner, runId } = repository
    await writeConfig(above)
    await writeFile(join(root, 'package.json'), '{}')
    const { code, stderr } = await tallystickFrom(inner, 'replay', shop.ledgerPath, runId)
    expect({ code, where: stderr.includes(`up to ${root}`) }).toEqual({ code: 2, where: true })
    const path = await writeConfig(root)
    const found = await tallystickFrom(inner, 'replay', shop.ledgerPath, runId, '--json')
    expect(found.code).toBe(0)
    expect(
      found.stderr.split('\n').flatMap((line) => (line.includes('"config"') ? [json(line)] : [])),
    ).toEqual([{ config: path }])
  })

  it('is not said where it was named, since who named it knows', async () => {
    await using repository = await openRepository()
    const { shop, inner, runId } = repository
    const { code, stderr } = await tallystickFrom(
      inner,
      'replay',
      shop.ledgerPath,
      runId,
      '--config',
      shopConfig,
    )
    expect({ code, isSaid: stderr.includes('Agents are those of') }).toEqual({ code: 0, isSaid: false })
  })

  it.each(['run', 'resume', 'fork', 'replay', 'regression'])(
    'that every user may write is not loaded for %s, unless it is named',
    async (verb) => {
      await using repository = await openRepository()
      const { shop, inner, runId } = repository
      const path = await writeConfig(inner)
      await chmod(path, 0o666)
      const words = {
        ...{ run: ['shopper', 'Buy tea.'], resume: [runId, '--yes'], fork: [runId], replay: [runId] },
        regression: [runId, '--out', join(inner, 'tea.spec.ts')],
      }[verb] as readonly string[]
      const refused = await tallystickFrom(inner, verb, shop.ledgerPath, ...words)
      expect(refused).toMatchObject({ code: 2, stdout: '' })
      expect(refused.stderr).toContain(`${path} was not loaded, since ${path} can be written by every user`)
      expect(refused.stderr).toContain(`name it with --config ${path}`)
      expect(refused.stderr).not.toContain('config closed')
      const named = await tallystickFrom(inner, verb, shop.ledgerPath, ...words, '--config', path)
      expect(named.stderr).not.toContain('was not loaded')
    },
  )

  it('is not loaded from a folder that every user may write, nor over a link to one', async () => {
    await using repository = await openRepository()
    const { shop, above, inner, runId } = repository
    const replay = (): Promise<{ code: number | null; stderr: string }> =>
      tallystickFrom(inner, 'replay', shop.ledgerPath, runId)
    const path = await writeConfig(inner)
    await chmod(inner, 0o777)
    expect((await replay()).stderr).toContain(`since ${inner} can be written by every user`)
    // Where files of others cannot be replaced, the file alone counts.
    await chmod(inner, 0o1777)
    expect((await replay()).code).toBe(0)
    const open = join(above, 'open')
    await mkdir(open)
    await rename(path, join(open, 'own.mjs'))
    await symlink(join(open, 'own.mjs'), path)
    expect((await replay()).code).toBe(0)
    await chmod(open, 0o777)
    expect((await replay()).stderr).toContain(`since ${open} can be written by every user`)
  })

  const notRoot = process.getuid?.() === 0 ? '' : ' (skipped: only root can give a file away)'
  // Only root can give a file to another user.
  it.skipIf(notRoot)(`is not loaded where it belongs to another user${notRoot}`, async () => {
    await using repository = await openRepository()
    const { shop, inner, runId } = repository
    const path = await writeConfig(inner)
    await chown(path, 12_345, 12_345)
    const { code, stderr } = await tallystickFrom(inner, 'replay', shop.ledgerPath, runId)
    expect(code).toBe(2)
    expect(stderr).toContain(`${path} was not loaded, since ${path} belongs to another user (id 12345)`)
  })

  it('counts root and the own group of the user as the user, and no other group', () => {
    const user = { userId: 1000, groupId: 1000 }
    const file = { isSymbolicLink: () => false, isDirectory: () => false }
    const faultOf = (uid: number, gid: number, mode: number): string | undefined =>
      findAccessFault({ ...file, uid, gid, mode }, user)
    expect(faultOf(1000, 1000, 0o100664)).toBeUndefined()
    expect(faultOf(0, 0, 0o100664)).toBeUndefined()
    expect(faultOf(1000, 100, 0o100644)).toBeUndefined()
    expect(faultOf(1000, 100, 0o100664)).toBe('can be written by its group (id 100)')
    expect(faultOf(1001, 1001, 0o100644)).toBe('belongs to another user (id 1001)')
    expect(
      findAccessFault({ ...file, uid: 1000, gid: 100, mode: 0o100664 }, { userId: 1000, groupId: 100 }),
    ).toBe('can be written by its group (id 100)')
  })
})

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
  const folder = temporaryFolder()
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

describe('a connection string', () => {
  it.each([
    ['postgres://ada:sesame@db.example:5432/app', 'postgres://ada@db.example:5432/app'],
    ['postgresql://ada:ses%40me@db/app?sslmode=require', 'postgresql://ada@db/app?sslmode=require'],
    ['postgres://ada@db/app?password=sesame&schema=x', 'postgres://ada@db/app?schema=x'],
    ['postgres:///app?host=/run/postgres&sslpassword=sesame', 'postgres:///app?host=%2Frun%2Fpostgres'],
    ['postgres://db/app', 'postgres://db/app'],
    ['postgres://ada:sesame@:none/app', 'postgres://…'],
    [' postgres://ada:sesame@db/app', 'postgres://ada@db/app'],
    ['mysql://ada:sesame@db/app', 'mysql://ada@db/app'],
    ['redis://:sesame@cache:6379/0', 'redis://cache:6379/0'],
    ['libsql://db.example?authToken=sesame', 'libsql://db.example'],
    ['\thttps://ada:sesame@db.example/runs.db', 'https://ada@db.example/runs.db'],
    ['mongodb+srv://ada:sesame@[db/app', 'mongodb+srv://…'],
    ['runs.db', 'runs.db'],
  ])('%s is shown as %s', (ledger, shown) => {
    expect(hidePassword(ledger)).toBe(shown)
    expect(toLedgerSource(ledger, tmpdir())).toBe(ledger === 'runs.db' ? join(tmpdir(), ledger) : shown)
  })

  it('is one where it begins so, and a file elsewhere', () => {
    expect(['postgres://db/app', 'postgresql://db', 'POSTGRES://db'].map(isPostgres)).toEqual([
      true,
      true,
      true,
    ])
    expect(['postgres.db', './postgres:/runs', 'runs.db'].map(isPostgres)).toEqual([false, false, false])
  })

  it('names the schema and whether there is a pooler between, and leaves the rest to the driver', () => {
    expect(parsePostgresPlace('postgres://db/app?schema=agents&sslmode=require&pooled=true')).toEqual({
      ...{ connectionString: 'postgres://db/app?sslmode=require', schema: 'agents', pooled: true },
    })
    expect(parsePostgresPlace('postgres://db/app?sslmode=require')).toEqual({
      connectionString: 'postgres://db/app?sslmode=require',
    })
    expect(() => parsePostgresPlace('postgres://ada:sesame@db/app?pooled=1')).toThrow(
      /^The parameter pooled (?!.*sesame)/,
    )
  })

  it.each(['mysql://ada:sesame@db/app', ' redis://:sesame@cache', 'file:///runs.db?key=sesame'])(
    'of another kind, %s, is a 2 that names what a ledger can be, and no password',
    async (ledger) => {
      for (const words of [
        ['list', ledger],
        ['show', ledger, 'latest'],
      ]) {
        const { code, stdout, stderr } = await tallystickHere(...words)
        expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
        expect(stderr).toMatch(
          /is not a ledger: it is neither a path nor .*\. Give the path of a SQLite file, or /,
        )
        expect(stderr).not.toContain('sesame')
      }
    },
  )

  it('is a 2 that says what to install where pg is not', () => {
    const [hook, main] = [
      import.meta.resolve('./kit/without-package.ts?pg'),
      import.meta.resolve('../src/main.ts'),
    ]
    const words = ['--import', hook, fileURLToPath(main), 'list', 'postgres://ada:sesame@db/app']
    const { status, stdout, stderr } = spawnSync(process.execPath, words, { encoding: 'utf8' })
    expect({ status, stdout, stderr }).toEqual({
      ...{ status: 2, stdout: '' },
      stderr:
        'error: A ledger in Postgres needs the package pg, which is not installed here. Install it beside @tallystick/cli: npm install pg\n',
    })
  })
})
