"""A drawn robot: an arm of two joints in a plane that is to bring its tip onto a coloured disc. Lengths are in links (both are 1), angles in radians.
The base is at the origin; the first angle is that of the upper arm with the x axis, the second that of the forearm with the upper arm."""
import dataclasses
import math

import numpy as np
from PIL import Image, ImageDraw

SIDE = 56  # pixels of a picture
FINER = 4  # times as large it is drawn
STEP_MAX = 0.1  # radians that a joint turns in a step
STEPS_MAX = 40  # of an episode
HELD_STEPS = 3  # at the target, before an episode of the expert ends
DISC_RADIUS = 0.2
NEAREST_START = 0.6  # of the tip to the target
SHOULDER, ELBOW = (-1.2, 1.2), (0.5, 2.4)  # where targets are reached, and where arms begin
LIMITS = ((-2.0, 2.0), (0.1, 3.0))  # of the joints
COLOURS = {"red": (230, 60, 50), "green": (70, 200, 80), "yellow": (240, 210, 60)}
CAMERAS = ("observation.images.top", "observation.images.wrist")
HALF_WIDTH = {"observation.images.top": 2.1, "observation.images.wrist": 1.4}
BACKGROUND, UPPER, FORE, TIP = (24, 26, 34), (120, 124, 140), (170, 174, 190), (250, 250, 250)


def elbow_of(joints):
    return np.array([math.cos(joints[0]), math.sin(joints[0])])


def tip_of(joints):
    turned = joints[0] + joints[1]
    return elbow_of(joints) + [math.cos(turned), math.sin(turned)]


def joints_of(place):
    """The angles with the elbow to the right of the way from the base to the place, where the tip is there."""
    x, y = place
    elbow = math.acos(min(1.0, max(-1.0, (x * x + y * y - 2) / 2)))
    return np.array([math.atan2(y, x) - math.atan2(math.sin(elbow), 1 + math.cos(elbow)), elbow])


@dataclasses.dataclass
class Scene:
    joints: np.ndarray
    target: np.ndarray  # place of the disc
    colour: str

    @property
    def task(self):
        return f"reach the {self.colour} disc"

    def distance(self):
        return float(np.linalg.norm(tip_of(self.joints) - self.target))

    def is_reached(self):
        """The tip is on the disc."""
        return self.distance() <= DISC_RADIUS

    def move(self, wanted):
        """One step towards joints that were asked for, as far as the motors and the joints let it."""
        step = np.clip(np.asarray(wanted, float) - self.joints, -STEP_MAX, STEP_MAX)
        self.joints = np.clip(self.joints + step, *np.transpose(LIMITS))


def begin(number, seed):
    """Episode `number`, a function of both."""
    draws = np.random.default_rng([seed, number])

    def somewhere():
        return np.array([draws.uniform(*SHOULDER), draws.uniform(*ELBOW)])
    target, colour = tip_of(somewhere()), list(COLOURS)[draws.integers(len(COLOURS))]
    while True:
        scene = Scene(somewhere(), target, colour)
        if scene.distance() > NEAREST_START:
            return scene


def towards(joints, target):
    """The joints that the expert asks for next: both arrive at once, and the faster one turns as fast as it may."""
    way = joints_of(target) - joints
    return joints + way * min(1.0, STEP_MAX / max(np.abs(way).max(), 1e-9))


def picture(scene, camera):
    """uint8 [SIDE, SIDE, 3]. The camera at the wrist looks at the tip, and turns with the forearm."""
    pixels, half = SIDE * FINER, HALF_WIDTH[camera]
    tip, turned = tip_of(scene.joints), scene.joints.sum()
    is_wrist = camera.endswith("wrist")
    middle, angle = (tip, turned) if is_wrist else (np.zeros(2), 0.0)
    turn = np.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])

    def at(place):
        x, y = turn @ (np.asarray(place) - middle) / half
        return (1 + x) / 2 * pixels, (1 - y) / 2 * pixels

    def disc(place, radius, colour):
        x, y = at(place)
        wide = radius / (2 * half) * pixels
        draw.ellipse([x - wide, y - wide, x + wide, y + wide], fill=colour)

    image = Image.new("RGB", (pixels, pixels), BACKGROUND)
    draw = ImageDraw.Draw(image)
    wide = int(0.12 / (2 * half) * pixels)
    elbow = elbow_of(scene.joints)
    draw.line([at((0, 0)), at(elbow)], fill=UPPER, width=wide)
    draw.line([at(elbow), at(tip)], fill=FORE, width=wide)
    disc(scene.target, DISC_RADIUS, COLOURS[scene.colour])
    disc(tip, 0.07, TIP)
    return np.asarray(image.resize((SIDE, SIDE), Image.Resampling.BOX))
