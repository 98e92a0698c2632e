/**
 * Returns the page as one file of HTML, with its script and style in it. It reads the routes of the server that it comes from;
 * `createServer({ inspector: true })` of `@tallystick/server` serves it.
 */
export async function loadInspectorPage(): Promise<string> {
  const { page } = await import('./page-source.ts')
  return page
}
