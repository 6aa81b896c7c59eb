package lint

import "tidegate.dev/tidegate/internal/lang/rulefile"

func blindDoor(p *pass) {
	for _, door := range p.doors {
		for _, problem := range p.file.Blind(rulefile.Door(door)) {
			p.add(problem)
		}
	}
}
