/** Puts the page of the inspector into a bundle as it is, since Vite makes it only in this repository. */
export const readyPage = {
  name: 'ready-page',
  load: {
    filter: { id: /[\\/]inspector[\\/]src[\\/]page-source\.ts$/ },
    async handler(id: string): Promise<string> {
      const { page } = (await import(id)) as { readonly page: string }
      return `export const page: string = ${JSON.stringify(page)}`
    },
  },
}
