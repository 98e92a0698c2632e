import axe from 'axe-core'
import type { Page } from 'playwright-core'

/** What axe finds wrong with the page as it is now: its rules, and where each is broken. */
export async function findBarriers(page: Page): Promise<readonly string[]> {
  // By the protocol of the browser, since the page may load no script.
  await page.evaluate(axe.source)
  const { violations } = await page.evaluate(() => (globalThis as unknown as { axe: typeof axe }).axe.run())
  return violations.flatMap(({ id, nodes }) => nodes.map(({ target }) => `${id}: ${target.join(' ')}`))
}
