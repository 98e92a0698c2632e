import { rename, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { awaitInspector, type Inspector, visit } from './kit/inspector.ts'
import { openShop } from './kit/shop.ts'
import { startTallystickFrom, tallystickFrom } from './kit/tallystick.ts'

/** A configuration whose agent, and its answer, are in a file that it imports. */
async function writeProject(folder: string, answer: string): Promise<void> {
  await writeFile(join(folder, 'answer.mjs'), `export const answer = ${JSON.stringify(answer)}\n`)
  await writeFile(
    join(folder, 'tallystick.config.mjs'),
    `import { defineAgent } from '@tallystick/core'
import { scriptedModel } from '@tallystick/testkit'
import { answer } from './answer.mjs'
const model = scriptedModel([{ text: answer }])
export default { agents: [defineAgent({ name: 'waiter', instructions: answer, model })] }
`,
  )
}

async function startDev(folder: string, answer: string): Promise<Inspector> {
  await symlink(join(import.meta.dirname, '../node_modules'), join(folder, 'node_modules'))
  await writeProject(folder, answer)
  const inspector = await awaitInspector(startTallystickFrom(folder, 'dev', 'new.db'))
  onTestFinished(() => inspector.work.kill('SIGTERM'))
  return inspector
}

describe('dev', () => {
  it('makes a ledger, starts runs, and takes a change of what the configuration imports, after an error as well', async () => {
    await using shop = await openShop()
    const inspector = await startDev(shop.folder, 'Tea.')
    const { work, url } = inspector
    const { get, post } = await visit(inspector)
    const run = async (): Promise<unknown> => {
      const started = await post('/runs', { agent: 'waiter', input: 'Hello.' })
      const { runId } = (await started.json()) as { readonly runId: string }
      return await (await get(`/runs/${runId}/result?waitMs=30000`)).json()
    }
    expect(await run()).toMatchObject({ status: 'done', text: 'Tea.' })

    await writeFile(join(shop.folder, 'answer.mjs'), 'export const answer =')
    await work.says('cannot be imported')
    await writeFile(join(shop.folder, 'answer.mjs'), `export const answer = 'Coffee.'\n`)
    await work.says('The agents are loaded anew.')
    // The same cookie: a page stays open. The ticket was used in the process before this one.
    expect(await run()).toMatchObject({ status: 'done', text: 'Coffee.' })
    expect((await fetch(url)).status).toBe(403)

    work.kill('SIGTERM')
    expect((await work.ending).code).toBe(0)
  })

  it('takes each change of a file that is replaced, as editors and git do', async () => {
    await using shop = await openShop()
    const { work } = await startDev(shop.folder, 'Tea 0.')
    const [file, written] = [join(shop.folder, 'answer.mjs'), join(shop.folder, 'written')]
    for (const answer of ['Tea 1.', 'Tea 2.', 'Tea 3.']) {
      await writeFile(
        written,
        `export const answer = ${JSON.stringify(answer)}\nconsole.error('loaded', answer)\n`,
      )
      await rename(written, file)
      await work.says(`loaded ${answer}`)
    }
    await rm(file)
    await work.says('cannot be imported')
    await writeFile(file, `export const answer = 'Tea 4.'\nconsole.error('loaded', answer)\n`)
    await work.says('loaded Tea 4.')
    work.kill('SIGTERM')
    expect((await work.ending).code).toBe(0)
  })

  it('ends when the process is killed that started it', async () => {
    await using shop = await openShop()
    const inspector = await startDev(shop.folder, 'Tea.')
    const { get } = await visit(inspector)
    expect((await get('/inspector/self')).status).toBe(200)
    inspector.work.kill('SIGKILL')
    // Ends as soon as no process holds its output.
    await inspector.work.ending
    await expect(get('/inspector/self')).rejects.toThrow('fetch failed')
  })

  it('needs a configuration', async () => {
    await using shop = await openShop()
    const { code, stderr } = await tallystickFrom(shop.folder, 'dev', 'new.db')
    expect([code, stderr]).toEqual([2, expect.stringContaining('No configuration was found')])
  })
})
