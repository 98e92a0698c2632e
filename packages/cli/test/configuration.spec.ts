import { chmod, chown, mkdir, realpath, rename, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { findAccessFault } from '../src/drive/config.ts'
import { openShop, shopConfig, type Shop } from './kit/shop.ts'
import { json, tallystickFrom } from './kit/tallystick.ts'

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
