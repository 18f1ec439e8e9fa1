"""Looks into a docker archive: its configuration, the size of its layers, the files in them."""
import json
import tarfile


class Archive:
    def __init__(self, path):
        with tarfile.open(path) as tar:
            manifest = json.load(tar.extractfile("manifest.json"))[0]
            self.config = json.load(tar.extractfile(manifest["Config"]))["config"]
            self.layer_bytes = [tar.getmember(layer).size for layer in manifest["Layers"]]
            self.files = set()
            for layer in manifest["Layers"]:
                with tarfile.open(fileobj=tar.extractfile(layer)) as content:
                    self.files |= {name.removeprefix("./") for name in content.getnames()}

    def added_mb(self):
        """Size of what lies over the base, which is the first layer."""
        return sum(self.layer_bytes[1:]) / 1e6
