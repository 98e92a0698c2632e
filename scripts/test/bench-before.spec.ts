import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text as textOf } from 'node:stream/consumers'
import { describe, expect, it, onTestFinished } from 'vitest'

const repository = join(import.meta.dirname, '../..')

function git(parameters: readonly string[], env = process.env): { status: number | null; stdout: string } {
  return spawnSync('git', parameters, { cwd: repository, encoding: 'utf8', env })
}

const hasCommits = git(['rev-parse', 'HEAD']).status === 0

/** A folder for the temporary files of one test. */
function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'bench-before-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Starts `pnpm bench` with its temporary files in a folder. */
function bench(parameters: readonly string[], folder: string, env: NodeJS.ProcessEnv = {}) {
  return spawn(process.execPath, ['bench/main.ts', ...parameters], {
    cwd: repository,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, TMPDIR: folder, ...env },
  })
}

async function ended(child: ReturnType<typeof bench>) {
  const [stdout, stderr, [status]] = await Promise.all([
    textOf(child.stdout),
    textOf(child.stderr),
    once(child, 'close'),
  ])
  return { stdout, stderr, status: status as number }
}

/** Demands that no checkout is left behind, neither its files nor its entry in the repository. */
function expectClean(folder: string): void {
  expect(readdirSync(folder).filter((name) => name.startsWith('tallystick-'))).toEqual([])
  expect(git(['worktree', 'list']).stdout).not.toContain(folder)
}

/** An empty commit, whose objects are in a folder and not in this repository. */
function commitOfNothing(folder: string): { readonly commit: string; readonly env: NodeJS.ProcessEnv } {
  mkdirSync(folder)
  const objects = git(['rev-parse', '--path-format=absolute', '--git-path', 'objects']).stdout.trim()
  const names = {
    GIT_AUTHOR_NAME: 'a',
    GIT_AUTHOR_EMAIL: 'a@b',
    GIT_COMMITTER_NAME: 'a',
    GIT_COMMITTER_EMAIL: 'a@b',
  }
  const env = { GIT_OBJECT_DIRECTORY: folder, GIT_ALTERNATE_OBJECT_DIRECTORIES: objects }
  const all = { ...process.env, ...names, ...env }
  const tree = git(['hash-object', '-t', 'tree', '-w', '/dev/null'], all).stdout.trim()
  return { commit: git(['commit-tree', tree, '-m', 'nothing'], all).stdout.trim(), env }
}

// Sources may have been unpacked without their history.
describe.skipIf(!hasCommits)('pnpm bench --before', () => {
  it('measures the packages of a commit beside those of today, and removes its checkout', async () => {
    const folder = temporaryFolder()
    const child = bench(['text', 'wire', '--smoke', '--own', '--before', 'HEAD'], folder)
    const { stdout, stderr, status } = await ended(child)
    expect(stderr).not.toContain('Error')
    expect(stdout).toBe('bench: 12 results checked, 0 wrong\n')
    expect(status).toBe(0)
    expectClean(folder)
  })

  it('removes the checkout when it is stopped', async () => {
    const folder = temporaryFolder()
    const child = bench(['text', '--own', '--before', 'HEAD'], folder)
    child.stderr.on('data', (chunk: Buffer) => {
      if (chunk.toString().includes('installing')) child.kill('SIGINT')
    })
    const { stderr, status } = await ended(child)
    expect(stderr).toContain('Stopped')
    expect(status).toBe(130)
    expectClean(folder)
  })

  it('says what is wrong with a commit that it cannot measure', async () => {
    const folder = temporaryFolder()
    const unknown = await ended(bench(['text', '--own', '--before', 'no-such-branch'], folder))
    expect(unknown.stderr).toContain('This clone has no commit no-such-branch.')
    expect(unknown.status).toBe(2)

    const { commit, env } = commitOfNothing(join(folder, 'objects'))
    const empty = await ended(bench(['text', '--own', '--before', commit], folder, env))
    expect(empty.stderr).toContain(`The dependencies of ${commit.slice(0, 8)} cannot be installed`)
    expect(empty.status).toBe(1)
    expectClean(folder)
  })
})
