/** What the timeline is painted with: colours as the present scheme has them, and patterns made of them. */
export interface Palette {
  readonly text: string
  readonly soft: string
  readonly line: string
  readonly ground: string
  readonly model: string
  readonly modelSoft: string
  readonly tool: string
  readonly failed: CanvasPattern
  readonly failedEdge: string
  readonly people: CanvasPattern
  readonly peopleEdge: string
  readonly outside: CanvasPattern
  readonly outsideEdge: string
  readonly time: CanvasPattern
  readonly timeEdge: string
  readonly nobody: CanvasPattern
  readonly nobodyEdge: string
}

type Paint = (pen: CanvasRenderingContext2D) => void

/** Every pattern is a tile of 8 by 8 px. */
const tile = 8

const patterns: Readonly<Record<'hatch' | 'dots' | 'bars' | 'dashes' | 'cross', Paint>> = {
  hatch: (pen) => {
    for (const x of [-tile, 0, tile]) drawLine(pen, x, tile, x + tile, 0)
  },
  dots: (pen) => {
    for (const [x, y] of [
      [2, 2],
      [6, 6],
    ] as const) {
      pen.beginPath()
      pen.arc(x, y, 1.25, 0, 7)
      pen.fill()
    }
  },
  bars: (pen) => pen.fillRect(3, 0, 2, tile),
  dashes: (pen) => {
    pen.fillRect(0, 2, 5, 1.5)
    pen.fillRect(4, 6, 4, 1.5)
  },
  cross: (pen) => {
    for (const x of [-tile, 0, tile]) {
      drawLine(pen, x, tile, x + tile, 0)
      drawLine(pen, x, 0, x + tile, tile)
    }
  },
}

function drawLine(pen: CanvasRenderingContext2D, x1: number, y1: number, x2: number, y2: number): void {
  pen.beginPath()
  pen.moveTo(x1, y1)
  pen.lineTo(x2, y2)
  pen.stroke()
}

/** Reads the colours that an element has. */
export function readPalette(element: HTMLElement): Palette {
  const probe = document.createElement('span')
  element.append(probe)
  const read = (name: string): string => {
    probe.style.color = `var(--${name})`
    return getComputedStyle(probe).color
  }
  const make = (name: string, pattern: keyof typeof patterns): CanvasPattern => {
    const ratio = devicePixelRatio
    const canvas = document.createElement('canvas')
    canvas.width = canvas.height = Math.round(tile * ratio)
    const pen = canvas.getContext('2d')!
    pen.scale(canvas.width / tile, canvas.width / tile)
    pen.fillStyle = read(`lane-${name}-soft`)
    pen.fillRect(0, 0, tile, tile)
    pen.fillStyle = pen.strokeStyle = read(`lane-${name}`)
    pen.lineWidth = 1.5
    patterns[pattern](pen)
    const made = pen.createPattern(canvas, 'repeat')!
    made.setTransform(new DOMMatrix().scale(tile / canvas.width))
    return made
  }
  const palette = {
    ...{ text: read('text'), soft: read('text-soft'), line: read('line'), ground: read('ground') },
    ...{ model: read('lane-model'), modelSoft: read('lane-model-soft'), tool: read('lane-tool') },
    ...{ failed: make('failed', 'hatch'), failedEdge: read('lane-failed') },
    ...{ people: make('people', 'dots'), peopleEdge: read('lane-people') },
    ...{ outside: make('outside', 'bars'), outsideEdge: read('lane-outside') },
    ...{ time: make('time', 'dashes'), timeEdge: read('lane-time') },
    ...{ nobody: make('nobody', 'cross'), nobodyEdge: read('lane-nobody') },
  }
  probe.remove()
  return palette
}
