import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { failureClasses } from '@tallystick/core/internal'
import { finishReasons, limitNames, outcomes, stopReasons } from '@tallystick/core/vocabulary'

const page = readFileSync(new URL('../../docs/endings.md', import.meta.url), 'utf8')

it.each([...finishReasons, ...outcomes, ...failureClasses, ...stopReasons, ...limitNames])(
  'docs/endings.md has a row for %s',
  (word) => {
    expect(page).toMatch(new RegExp(`^\\| \`${word}\` +\\| \\S`, 'm'))
  },
)
