package lint

import (
	"tidegate.dev/tidegate/internal/lang/rulefile"
	"tidegate.dev/tidegate/rules"
)

func blindDoor(p *pass) {
	p.partly = len(p.doors) < len(rules.Doors())
	for _, door := range p.doors {
		for _, problem := range p.file.Blind(rulefile.Door(door)) {
			p.add(problem)
		}
	}
}
