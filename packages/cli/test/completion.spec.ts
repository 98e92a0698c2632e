import { spawnSync } from 'node:child_process'
import { copyFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { exampleFolders, type ExampleFolders } from './kit/example-folder.ts'
import { json, tallystickHere } from './kit/tallystick.ts'

const isThere = (shell: string): boolean => spawnSync(shell, ['-c', 'true']).status === 0

/** The words that the help of the whole command names as verbs. */
async function verbsOfHelp(): Promise<readonly string[]> {
  const { stdout } = await tallystickHere('--help')
  return [...stdout.matchAll(/^ {2}([a-z]+) {2,}/gm)].flatMap(([, name = '']) =>
    name === 'help' ? [] : [name],
  )
}

describe('completion', () => {
  let folders: ExampleFolders
  let folder: string
  let env: NodeJS.ProcessEnv
  /** Of the ledger, the newest first. */
  let runs: readonly string[]
  beforeAll(async () => {
    folders = await exampleFolders()
    const opened = await folders.open('waiting')
    folder = opened.folder
    env = opened.environment
    for (const shell of ['bash', 'zsh', 'fish']) {
      const { stdout } = await tallystickHere('completion', shell)
      await writeFile(join(folder, `tallystick.${shell}`), stdout)
    }
    await copyFile(join(folder, 'runs.db'), join(folder, 'our runs.db'))
    const listed = await tallystickHere('list', join(folder, 'runs.db'), '--json')
    runs = listed.stdout
      .trimEnd()
      .split('\n')
      .map((line) => (json(line) as { runId: string }).runId)
  })
  afterAll(() => folders[Symbol.asyncDispose]())

  const run = (shell: string, script: string): readonly string[] => {
    const { stdout, stderr, status } = spawnSync(shell, ['-c', script], {
      cwd: folder,
      encoding: 'utf8',
      env,
    })
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    return stdout.split('\n').filter((line) => line !== '')
  }

  const lacking = (shell: string) => (isThere(shell) ? '' : ` (skipped: no ${shell} here)`)

  it('is a 2 for a shell that it does not know', async () => {
    const { code, stderr } = await tallystickHere('completion', 'csh')
    expect(code).toBe(2)
    expect(stderr).toContain('Allowed choices are bash, zsh, fish')
  })

  it('tells fish which words each place takes, and which have a value', async () => {
    const { stdout } = await tallystickHere('completion', 'fish')
    const after = (verb: string) =>
      stdout.split('\n').flatMap((line) => line.split(`-n '__fish_seen_subcommand_from ${verb}' `)[1] ?? [])
    expect(after('completion')).toEqual(["-a 'bash zsh fish'"])
    expect(after('diff').filter((line) => !line.startsWith('-l '))).toEqual([
      '-F',
      "-k -a '(__tallystick_runs)'",
    ])
    expect(after('list').filter((line) => line.startsWith('-l status '))).toEqual([
      expect.stringMatching(/^-l status -x -a 'done suspended under_way interrupted unreadable failed' -d '/),
    ])
    expect(after('resume').find((line) => line.startsWith('-l config '))).toMatch(/^-l config -r -F -d '/)
    expect(after('export').find((line) => line.startsWith('-l run '))).toMatch(
      /^-l run -x -a '\(__tallystick_runs\)' -d '/,
    )
    expect(after('deny').find((line) => line.startsWith('-l reason '))).toMatch(/^-l reason -x -d '/)
  })

  // Not every machine has this shell.
  describe.skipIf(!isThere('bash'))(`in bash${lacking('bash')}`, () => {
    const complete = (...words: readonly string[]): readonly string[] =>
      run(
        'bash',
        `source ./tallystick.bash; COMP_WORDS=(${['tallystick', ...words].map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length}; _tallystick; printf '%s\\n' "\${COMPREPLY[@]}"`,
      )

    it('completes verbs, options, their values, files and runs, each in its place', async () => {
      expect(complete('')).toEqual(await verbsOfHelp())
      expect(complete('res')).toEqual(['resume'])
      expect(complete('list', '--s')).toEqual(['--session', '--status', '--since'])
      expect(complete('list', 'our runs.db', '--status', 'un')).toEqual(['under_way', 'unreadable'])
      expect(complete('show', 'our')).toEqual(['our runs.db'])
      expect(complete('show', '--at', '3', 'our')).toEqual(['our runs.db'])
      expect(complete('show', 'our runs.db', '')).toEqual(['latest', ...runs])
      expect(complete('show', '--request', 'our runs.db', runs[2]!.slice(0, 12))).toEqual([runs[2]])
      expect(complete('diff', 'our runs.db', 'latest', 'la')).toEqual(['latest'])
      expect(complete('export', 'our runs.db', '--run', 'la')).toEqual(['latest'])
      expect(complete('show', 'none.db', '')).toEqual([])
      expect(complete('resume', 'our runs.db', 'latest', '--config', 'our')).toEqual(['our runs.db'])
      expect(complete('deny', 'our runs.db', 'latest', 'c', '--reason', '')).toEqual([])
      expect(complete('completion', '')).toEqual(['bash', 'zsh', 'fish'])
    })
  })

  // Not every machine has this shell.
  describe.skipIf(!isThere('fish'))(`in fish${lacking('fish')}`, () => {
    const complete = (line: string): readonly string[] =>
      run('fish', `source ./tallystick.fish; complete -C '${line}'`).map(
        (found) => found.split('\t')[0] ?? '',
      )

    it('completes verbs, options, their values, files and runs', async () => {
      expect(complete('tallystick ').toSorted()).toEqual([...(await verbsOfHelp())].sort())
      expect(complete('tallystick list --s')).toEqual(['--session', '--since', '--status'])
      expect(complete('tallystick list --status in')).toEqual(['interrupted'])
      expect(complete('tallystick show our')).toEqual(['our runs.db'])
      expect(complete('tallystick show runs.db la')).toEqual(['latest'])
      expect(complete(`tallystick show runs.db ${runs[2]!.slice(0, 12)}`)).toEqual([runs[2]])
      expect(complete('tallystick export runs.db --run la')).toEqual(['latest'])
      expect(complete('tallystick completion ')).toEqual(['bash', 'fish', 'zsh'])
    })
  })

  // Not every machine has this shell.
  describe.skipIf(!isThere('zsh'))(`in zsh${lacking('zsh')}`, () => {
    /** What Tab makes of lines in a terminal: a key after it has zsh print its line. */
    const complete = (...lines: readonly string[]): readonly string[] =>
      run(
        'zsh',
        String.raw`zmodload zsh/zpty; zpty shell 'PS1="" zsh -f -i'
          zpty -w shell 'autoload -U compinit; compinit -u -d ./dump; source ./tallystick.zsh; show() { print -r -- "<<$BUFFER>>"; zle .kill-buffer }; zle -N show; bindkey "^X" show; print REA""DY'
          zpty -r -m shell out '*READY*'
          for line in ${lines.map((line) => `'${line}'`).join(' ')}; do
            zpty -w -n shell "$line"$'\t\C-x'; zpty -r -m shell out '*<<*>>*'; print -r -- "${'$'}{${'$'}{out##*<<}%%>>*}"
          done`,
      ).map((line) => line.trimEnd())

    it('completes verbs, options, their values, files and runs', () => {
      const lines = [
        'sta',
        'list --stat',
        'list x.db --status susp',
        'show our',
        'show runs.db la',
        `show runs.db ${runs[2]!.slice(0, 12)}`,
        'completion zs',
      ]
      expect(complete(...lines.map((line) => `tallystick ${line}`))).toEqual([
        'tallystick stats',
        'tallystick list --status',
        'tallystick list x.db --status suspended',
        'tallystick show our\\ runs.db',
        'tallystick show runs.db latest',
        `tallystick show runs.db ${runs[2]}`,
        'tallystick completion zsh',
      ])
    })
  })
})
