import { gzipSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { loadInspectorPage } from '@tallystick/inspector'

it('is one file of at most 250 KB gzipped, which loads nothing', async () => {
  const page = await loadInspectorPage()
  expect(gzipSync(page).length).toBeLessThan(250_000)
  expect(page.match(/<(?:script|link|img)\b[^>]*\b(?:src|href)=(?!"data:)[^>]*>/g)).toBe(null)
})
